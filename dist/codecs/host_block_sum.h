// Encodes, adds and decodes in host memory. Values on a GPU are copied there and back as they are.
#pragma once

#include <vector>

#include "dist/codecs/block_sum.h"

namespace tandem {

class HostBlockSum : public BlockSum {
 public:
  HostBlockSum(BlockCodec& codec, const Group& group, const BlockRange& range);

 private:
  struct Message {
    std::vector<std::byte> memory;
    std::size_t bytes = 0;  // of the memory that are used

    Bytes content() const { return std::span(memory).first(bytes); }
  };
  struct Messages {
    Message values;                                // of this worker, encoded
    Message sum;                                   // encoded by the owner
    std::vector<std::vector<std::byte>> received;  // by worker: what it sends to the owner
  };

  std::span<std::byte> message_memory(const Stretch& stretch, int worker) override {
    return of(stretch).received[static_cast<std::size_t>(worker)];
  }
  std::span<std::byte> sum_memory(const Stretch& stretch) override {
    return of(stretch).sum.memory;
  }
  void begin(Staging& values) override;
  Bytes encode(const Stretch& stretch) override;
  void add_up(const Stretch& stretch, const std::vector<Bytes>& messages) override;
  Bytes sum_of(const Stretch& stretch) override { return of(stretch).sum.content(); }
  void take_sum(const Stretch& stretch, Bytes sum) override;

  Messages& of(const Stretch& stretch) { return messages_[stretch.segment]; }
  void measure_norm();
  // Calls f(number of the block, its values).
  template <class F>
  void for_each_block(const Stretch& stretch, F&& f) const;

  Staging* values_ = nullptr;
  std::vector<Messages> messages_;  // by stretch
  std::vector<float> sum_;          // of a block
};

}  // namespace tandem
