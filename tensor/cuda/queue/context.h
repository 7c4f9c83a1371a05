// A worker's use of a GPU: its own stream, library handles and scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/cuda/kernels/kernels.h"
#include "tensor/cuda/queue/check.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace tandem::cuda {

class Context {
 public:
  Context(int device, Precision precision, bool deterministic);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // CUDA remembers the device per thread, so every thread that uses this context must call this.
  void make_current() const { check(cudaSetDevice(device), "choosing a device"); }

  // Throws SystemError while a step is being recorded: recorded work does not run, so algorithms
  // cannot be measured.
  void refuse_while_recording(const std::string& what) const;

  const int device;
  const Precision precision;
  const bool deterministic;

  cudaStream_t stream = nullptr;  // all computation, in order
  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;  // bound to `stream`
  Queue queue;                  // `stream`, for our own kernels

  // Workspace for cuBLAS and cuDNN, used on `stream`. Every call may use all of it, also while
  // algorithms are measured.
  static constexpr std::size_t kWorkspaceBytes = std::size_t{256} << 20;
  void* workspace = nullptr;

  std::uint64_t* step_key = nullptr;  // key of the step's random numbers
};

inline Type type_of(const Tensor& x) {
  require(x.dtype() == Dtype::f32 || x.dtype() == Dtype::bf16,
          "the GPU computes in f32 and bf16, not in {}", name_of(x.dtype()));
  return x.dtype() == Dtype::bf16 ? Type::bf16 : Type::f32;
}

}  // namespace tandem::cuda
