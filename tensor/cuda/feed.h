#pragma once

#include <array>

#include "tensor/cuda/context.h"
#include "tensor/cuda/event.h"
#include "tensor/feed.h"

namespace tandem::cuda {

// Copies on a stream of its own into one of two buffers, so that a batch travels while the one
// before it is computed with; from there it goes to its place when the compute stream gets there.
class CudaFeed : public Feed {
 public:
  CudaFeed(Context& context, const ByteScale& scale);
  ~CudaFeed() override;
  CudaFeed(const CudaFeed&) = delete;
  CudaFeed& operator=(const CudaFeed&) = delete;

  void bring(const Tensor& from, const Tensor& to) override;

 private:
  struct Slot {
    Tensor host;  // kept until it has arrived
    void* data = nullptr;
    std::size_t bytes = 0;
    CudaEvent arrived, consumed;
  };

  static void* copied(const std::vector<float>& values);

  Context& context_;
  cudaStream_t stream_ = nullptr;
  void *scale_ = nullptr, *offset_ = nullptr;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace tandem::cuda
