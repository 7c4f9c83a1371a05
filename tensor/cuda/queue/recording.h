// A CUDA graph: work captured from a stream, which is then launched as a unit.
#pragma once

#include "base/function_ref.h"
#include "tensor/cuda/queue/check.h"
#include "tensor/device_queue.h"

namespace tandem::cuda {

class CudaRecording : public Recording {
 public:
  // Records what `work` queues on `stream`, without running it.
  CudaRecording(cudaStream_t stream, FunctionRef<void()> work) : stream_(stream) {
    // Relaxed, so that this thread and other workers may allocate memory during the capture.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "beginning to record");
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "recording");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "preparing a recording");
  }
  ~CudaRecording() override { cudaGraphExecDestroy(executable_); }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  void replay() override { check(cudaGraphLaunch(executable_, stream_), "replaying a recording"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::cuda
