// The interface of the CUDA backend; it includes no CUDA headers.
#pragma once

#include <memory>
#include <string>

#include "tensor/precision.h"

namespace tandem {

class Backend;

struct CudaOptions {
  int index = 0;  // which GPU
  Precision precision = Precision::fp32;
  // Only algorithms that give the same bits every time, chosen without measuring.
  bool deterministic = false;
};

// Throws UserError if this build or this machine cannot use the GPU.
std::shared_ptr<Backend> cuda_backend(const CudaOptions& options);

// Announces how many GPU workers this process will run. Call it before any other CUDA call and
// before starting threads.
void expect_cuda_workers(int workers);

// The number of GPUs. Throws UserError if this build or this machine cannot use any.
int cuda_device_count();

// "CUDA 13.0, cuDNN 9.14.0"; empty if this build has no CUDA.
std::string cuda_versions();

}  // namespace tandem
