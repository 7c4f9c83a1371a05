#include "dist/codecs/device_block_sum.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// How many blocks are added at once. A GPU takes about 20 µs for each stretch, however short. With
// fewer than six, sums would be sent late: the last one is sent when all values have been.
std::int64_t stretch_blocks(const BlockRange& range, int ranks) {
  constexpr std::int64_t kLeast = 256, kStretches = 6;
  return std::max(kLeast, parts(parts(range.blocks(), ranks), kStretches));
}

}  // namespace

// While a device adds one stretch, this thread waits for the messages of the next.
DeviceBlockSum::DeviceBlockSum(BlockCodec& codec, const Group& group, const BlockRange& range)
    : BlockSum(codec, group, range, stretch_blocks(range, group.ranks), 1) {}

std::unique_ptr<Staging> DeviceBlockSum::make_staging() const {
  EncodedStaging::Layout layout{.count = range_.count,
                                .first_block = range_.first_block,
                                .segments = segments_,
                                .most_block_bytes = codec_.most_bytes(kBlock),
                                .most_block_sum_bytes = codec_.most_sum_bytes(kBlock),
                                .workers = group_.ranks,
                                .gaps = codec_.padding_in(range_)};
  for (const Stretch& stretch : stretches_) {
    layout.most_bytes.push_back(codec_.most_bytes_of_run(count(stretch)));
    layout.most_sum_bytes.push_back(codec_.most_sum_bytes_of_run(count(stretch)));
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

void DeviceBlockSum::add_up(const Stretch& stretch, const std::vector<Bytes>& messages) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  std::vector<EncodedStaging::Message> of_all;
  for (const Bytes& message : messages)
    of_all.push_back(
        {.data = message.data(), .offsets = codec_.offsets_in(message, count(stretch))});
  values_->add(stretch.segment, of_all);
}

BlockSum::Bytes DeviceBlockSum::sum_of(const Stretch& stretch) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  return values_->sum(stretch.segment);
}

void DeviceBlockSum::take_sum(const Stretch& stretch, Bytes sum) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  values_->put_sum(stretch.segment, codec_.sum_offsets_in(sum, count(stretch)));
}

}  // namespace tandem
