#include "tensor/cuda/queue/recording.h"

namespace tandem::cuda {

CudaRecording::CudaRecording(Context& context, const std::function<void()>& work)
    : context_(context) {
  // Relaxed: memory may be taken meanwhile, here and by other workers.
  check(cudaStreamBeginCapture(context.stream, cudaStreamCaptureModeRelaxed),
        "beginning to record a step");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(context.stream, &graph);
    cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(context.stream, &graph), "recording a step");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "preparing a recorded step");
}

CudaRecording::~CudaRecording() { cudaGraphExecDestroy(executable_); }

}  // namespace tandem::cuda
