#include "dist/codecs/device_block_sum.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr std::int64_t kStretch = 256;  // blocks; adding a few of them takes a GPU as long

}  // namespace

// While a device adds one stretch, this thread waits for the messages of the next.
DeviceBlockSum::DeviceBlockSum(BlockCodec& codec, const Group& group, const BlockRange& range)
    : BlockSum(codec, group, range, kStretch, 1) {}

std::unique_ptr<Staging> DeviceBlockSum::make_staging() const {
  EncodedStaging::Layout layout{.count = range_.count,
                                .first_block = range_.first_block,
                                .segments = segments_,
                                .most_block_bytes = codec_.most_bytes(kBlock),
                                .most_block_sum_bytes = codec_.most_sum_bytes(kBlock),
                                .workers = group_.ranks,
                                .gaps = codec_.padding_in(range_)};
  for (const Stretch& stretch : stretches_) {
    const std::int64_t count = segments_[stretch.segment].count;
    layout.most_bytes.push_back(codec_.most_bytes_of_run(count));
    layout.most_sum_bytes.push_back(codec_.most_sum_bytes_of_run(count));
    layout.adds.push_back(owns(stretch));
  }
  return codec_.context().device.backend().make_encoded_staging(layout);
}

void DeviceBlockSum::begin(Staging& values) {
  values_ = dynamic_cast<EncodedStaging*>(&values);
  require(values_ != nullptr, "a sum that is encoded on a device needs its staging");
  values_->encode(codec_.encoding());
}

BlockSum::Bytes DeviceBlockSum::encode(const Stretch& stretch) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  values_->wait(stretch.segment);
  return values_->encoded(stretch.segment);
}

template <class Size>
std::vector<std::uint32_t> DeviceBlockSum::offsets_of(const Stretch& stretch, Bytes bytes,
                                                      const Size& size) const {
  std::vector<std::uint32_t> offsets;
  std::size_t at = 0;
  for (std::int64_t left = segments_[stretch.segment].count; left > 0; left -= kBlock) {
    offsets.push_back(static_cast<std::uint32_t>(at));
    at += size(bytes.subspan(at), std::min(left, kBlock));
  }
  require(at == bytes.size(), "{} bytes of an encoded gradient are left over", bytes.size() - at);
  return offsets;
}

void DeviceBlockSum::add_up(const Stretch& stretch, const std::vector<Bytes>& messages) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  std::vector<EncodedStaging::Message> of_all;
  for (const Bytes& message : messages)
    of_all.push_back({.data = message.data(),
                      .offsets = offsets_of(stretch, message, [&](Bytes bytes, std::int64_t count) {
                        return codec_.block_bytes(bytes, count);
                      })});
  values_->add(stretch.segment, of_all);
}

BlockSum::Bytes DeviceBlockSum::sum_of(const Stretch& stretch) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  return values_->sum(stretch.segment);
}

void DeviceBlockSum::take_sum(const Stretch& stretch, Bytes sum) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  values_->put_sum(stretch.segment, offsets_of(stretch, sum, [&](Bytes bytes, std::int64_t count) {
                     return codec_.sum_block_bytes(bytes, count);
                   }));
}

}  // namespace tandem
