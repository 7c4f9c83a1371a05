// Calls of CUDA, cuBLAS and cuDNN go through check(). It turns a failure into a SystemError that
// says what was being done.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string>

#include "base/error.h"

namespace tandem::cuda {

inline void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess)
    throw SystemError("the GPU failed in {}: {}", doing, cudaGetErrorString(status));
}

inline void check(cublasStatus_t status, const char* doing) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw SystemError("cuBLAS failed in {}: {}", doing, cublasGetStatusString(status));
}

inline void check(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string more(512, '\0');
  cudnnGetLastErrorString(more.data(), more.size());
  throw SystemError("cuDNN failed in {}: {} ({})", doing, cudnnGetErrorString(status),
                    more.c_str());
}

}  // namespace tandem::cuda
