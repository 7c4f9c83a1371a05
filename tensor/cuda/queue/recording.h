// CUDA graphs: work captured from a stream, which is then launched as a unit.
#pragma once

#include <memory>

#include "tensor/cuda/queue/check.h"
#include "tensor/device_queue.h"

namespace tandem::cuda {

class CudaRecording : public Recording {
 public:
  // Takes over the graph.
  CudaRecording(cudaStream_t stream, cudaGraph_t graph) : stream_(stream) {
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

// Captures what is queued on a stream, without running it, while this object lives.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) { begin(); }
  ~Capture() {
    if (!capturing_) return;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Ends a recording and begins the next.
  std::unique_ptr<Recording> cut() {
    auto recording = end();
    begin();
    return recording;
  }
  std::unique_ptr<Recording> end() {
    cudaGraph_t graph = nullptr;
    capturing_ = false;
    check(cudaStreamEndCapture(stream_, &graph), "recording");
    return std::make_unique<CudaRecording>(stream_, graph);
  }

 private:
  // Relaxed, so that this thread and other workers may allocate memory during the capture.
  void begin() {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "beginning to record");
    capturing_ = true;
  }

  cudaStream_t stream_;
  bool capturing_ = false;
};

}  // namespace tandem::cuda
