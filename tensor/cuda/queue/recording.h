// A CUDA graph: work that was captured from a stream, to be launched as one.
#pragma once

#include "base/function_ref.h"
#include "tensor/cuda/queue/check.h"
#include "tensor/device_queue.h"

namespace tandem::cuda {

class CudaRecording : public Recording {
 public:
  // What `work` queues on `stream`, without running it.
  CudaRecording(cudaStream_t stream, FunctionRef<void()> work) : stream_(stream) {
    // Relaxed: memory may be allocated meanwhile, here and by other workers.
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
