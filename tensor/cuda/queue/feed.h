#pragma once

#include <array>
#include <vector>

#include "tensor/cuda/queue/context.h"
#include "tensor/cuda/queue/event.h"
#include "tensor/device_queue.h"

namespace tandem::cuda {

// Copies batches on its own stream into one of two slots, so that a batch is copied while the
// previous one is computed. The compute stream then moves it from the slot to its place.
class CudaFeed : public Feed {
 public:
  CudaFeed(Context& context, const ByteScale& scale);
  ~CudaFeed() override;
  CudaFeed(const CudaFeed&) = delete;
  CudaFeed& operator=(const CudaFeed&) = delete;

  void bring(std::span<const Move> moves) override;

 private:
  struct Part {
    Tensor host;  // kept alive until it is copied
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Slot {
    std::vector<Part> parts;
    CudaEvent arrived, consumed;
  };

  void* copied(const std::vector<float>& values) const;
  static void grow(Slot& slot, Part& part, std::size_t bytes);
  void put_in_place(const Part& part, const Tensor& to) const;

  Context& context_;
  cudaStream_t stream_ = nullptr;
  void *scale_ = nullptr, *offset_ = nullptr;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace tandem::cuda
