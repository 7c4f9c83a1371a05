// Lets the device that has the values encode, add and decode them (tensor/encoded_staging.h). The
// messages are those of HostBlockSum.
#pragma once

#include <vector>

#include "dist/codecs/block_sum.h"
#include "tensor/encoded_staging.h"

namespace tandem {

class DeviceBlockSum : public BlockSum {
 public:
  DeviceBlockSum(BlockCodec& codec, const Group& group, const BlockRange& range);

  std::unique_ptr<Staging> make_staging() const override;

 private:
  std::span<std::byte> message_memory(const Stretch& stretch, int worker) override {
    return values_->message_memory(stretch.segment, worker);
  }
  std::span<std::byte> sum_memory(const Stretch& stretch) override {
    return values_->sum_memory(stretch.segment);
  }
  void begin(Staging& values) override;
  Bytes encode(const Stretch& stretch) override;
  void add_up(const Stretch& stretch, const std::vector<Bytes>& messages) override;
  Bytes sum_of(const Stretch& stretch) override;
  void take_sum(const Stretch& stretch, Bytes sum) override;

  std::int64_t count(const Stretch& stretch) const { return segments_[stretch.segment].count; }

  EncodedStaging* values_ = nullptr;
};

}  // namespace tandem
