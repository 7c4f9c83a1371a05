// The CUDA backend's door. CUDA headers stay behind it.
#pragma once

#include <memory>
#include <string>

#include "tensor/precision.h"

namespace tandem {

class Backend;

struct CudaOptions {
  int index = 0;  // of the GPU
  Precision precision = Precision::fp32;
  // Only algorithms that give the same bits every time, chosen without measuring.
  bool deterministic = false;
};

// Throws UserError where this build or this machine cannot use the GPU.
std::shared_ptr<Backend> cuda_backend(const CudaOptions& options);

// This process is going to have so many workers on GPUs. To be said before anything else is asked
// of CUDA, by the only thread.
void expect_cuda_workers(int workers);

// How many GPUs there are. Throws UserError where this build or this machine cannot use any.
int cuda_device_count();

// "CUDA 13.0, cuDNN 9.14.0"; empty where this build has none.
std::string cuda_versions();

}  // namespace tandem
