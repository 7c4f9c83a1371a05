// Encodes gradients on a GPU. Kernels read and write encoded bytes in pinned host memory directly:
// there are few of them, and how many is known only when they are written.
//
// Encoding runs on the stream that other stagings use for copies to the host, adding and decoding
// on the one for copies back. So an iteration's values are encoded after those of the iteration
// before, as residuals require.
#pragma once

#include <deque>

#include "tensor/cuda/kernels/encode.h"
#include "tensor/cuda/queue/memory.h"
#include "tensor/cuda/queue/staging.h"
#include "tensor/encoded_staging.h"

namespace tandem::cuda {

class CudaEncodedStaging : public EncodedStaging {
 public:
  CudaEncodedStaging(const Context& context, const CopyStreams& streams, Layout layout);
  ~CudaEncodedStaging() override;

  void begin(const Tensor& values, const EventPtr& ready, const std::vector<Segment>& segments,
             Fill fill) override;
  bool finite() override;
  std::vector<float> values() override;

  void encode(const Encoding& encoding) override;
  void wait(std::size_t segment) override;
  std::span<const std::byte> encoded(std::size_t segment) override;

  std::span<std::byte> message_memory(std::size_t segment, int worker) override;
  std::span<std::byte> sum_memory(std::size_t segment) override;
  void add(std::size_t segment, std::span<const Message> messages) override;
  std::span<const std::byte> sum(std::size_t segment) override;
  void put_sum(std::size_t segment, std::span<const std::uint32_t> offsets) override;

  void settle() override;
  EventPtr finish() override;

 private:
  struct Part {  // of the values: a segment
    int first = 0, places = 0;
    std::size_t encoded_at = 0, sum_at = 0, messages_at = 0;
    std::size_t offsets_at = 0;   // of all workers, if this rank adds
    std::size_t pointers_at = 0;  // likewise
    int own = 0;                  // its number among those that this rank adds
  };

  EncodedBlocks blocks(int first, int places) const;
  Queue queue(cudaStream_t stream) const;

  const Context& context_;
  Layout layout_;
  cudaStream_t out_, back_;
  std::vector<Part> parts_;  // by segment
  int places_ = 0;

  DeviceMemory<std::int32_t> order_;  // of the blocks
  DeviceMemory<MessagePlace> encoded_places_, sum_places_;
  DeviceMemory<std::byte> slots_, sum_slots_;
  DeviceMemory<std::uint32_t> slot_sizes_, sum_slot_sizes_;
  DeviceMemory<cuda::Gap> gaps_;
  PinnedMemory<std::byte> encoded_, messages_, sums_;
  PinnedMemory<std::uint32_t> encoded_bytes_, sum_bytes_;  // by segment
  PinnedMemory<std::uint32_t> offsets_;      // of blocks in messages that this rank adds
  PinnedMemory<std::uint32_t> sum_offsets_;  // of blocks in sums_, by place
  PinnedMemory<const std::byte*> pointers_;  // to messages, and at last to sums_
  PinnedMemory<int> not_finite_;

  Encoding encoding_;
  Tensor values_;
  EventPtr ready_;
  CudaEvent checked_, encoded_all_;
  std::deque<CudaEvent> added_;  // by segment that this rank adds
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  EventPtr last_;  // after the last decoding; null before the first finish()
};

}  // namespace tandem::cuda
