#pragma once

#include <functional>

#include "tensor/cuda/queue/context.h"
#include "tensor/device_queue.h"

namespace tandem::cuda {

// A CUDA graph, captured from the context's stream.
class CudaRecording : public Recording {
 public:
  CudaRecording(Context& context, const std::function<void()>& work);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  void replay() override {
    check(cudaGraphLaunch(executable_, context_.stream), "replaying a step");
  }

 private:
  Context& context_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::cuda
