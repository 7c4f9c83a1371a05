#include "dist/codecs/host_block_sum.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tandem {
namespace {

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

constexpr std::int64_t kStretch = 64;  // blocks; encoding them takes about 100 µs

}  // namespace

HostBlockSum::HostBlockSum(BlockCodec& codec, const Group& group, const BlockRange& range)
    : BlockSum(codec, group, range, kStretch, 0),
      messages_(stretches_.size()),
      sum_(static_cast<std::size_t>(kBlock)) {
  for (const Stretch& stretch : stretches_) {
    const std::int64_t count = segments_[stretch.segment].count;
    Messages& own = of(stretch);
    own.values.memory.resize(codec.most_bytes_of_run(count));
    own.sum.memory.resize(codec.most_sum_bytes_of_run(count));
    if (!owns(stretch)) continue;
    own.received.resize(static_cast<std::size_t>(group.ranks));
    for (int worker = 0; worker < group.ranks; ++worker)
      if (worker != self_)
        own.received[static_cast<std::size_t>(worker)].resize(own.values.memory.size());
  }
}

template <class F>
void HostBlockSum::for_each_block(const Stretch& stretch, F&& f) const {
  const Pieces values = values_->packed(stretch.segment);
  std::int64_t block = stretch.first_block;
  for (std::size_t at = 0; at < values.bytes; block += group_.ranks) {
    const std::size_t bytes = std::min(kBlock * sizeof(float), values.bytes - at);
    f(block, floats(values.at(at, bytes)));
    at += bytes;
  }
}

void HostBlockSum::begin(Staging& values) {
  values_ = &values;
  if (codec_.needs_norm()) measure_norm();
}

void HostBlockSum::measure_norm() {
  double squares = 0;
  for (const Stretch& stretch : stretches_) {
    values_->wait(stretch.segment);
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for_each_block(stretch, [&](std::int64_t, std::span<float> v) {
      for (const float x : v) squares += static_cast<double>(x) * x;
    });
  }
  codec_.set_norm(std::sqrt(squares));
}

BlockSum::Bytes HostBlockSum::encode(const Stretch& stretch) {
  if (!codec_.needs_norm()) values_->wait(stretch.segment);  // else measure_norm() has waited
  const Spans::Scope span(group_.spans, SpanKind::compress);
  Message& message = of(stretch).values;
  message.bytes = 0;
  for_each_block(stretch, [&](std::int64_t block, std::span<float> v) {
    message.bytes += codec_.encode(block, v, message.memory.data() + message.bytes);
  });
  return message.content();
}

void HostBlockSum::add_up(const Stretch& stretch, const std::vector<Bytes>& messages) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  std::vector<Bytes> rest = messages;
  Message& encoded = of(stretch).sum;
  encoded.bytes = 0;
  for_each_block(stretch, [&](std::int64_t block, std::span<float> v) {
    const std::span<float> sum = std::span(sum_).first(v.size());
    std::ranges::fill(sum, 0.0F);
    for (Bytes& message : rest) message = message.subspan(codec_.add(block, message, sum));
    encoded.bytes += codec_.encode_sum(block, sum, encoded.memory.data() + encoded.bytes);
  });
  for (const Bytes& message : rest)
    require(message.empty(), "{} bytes of an encoded gradient are left over", message.size());
}

void HostBlockSum::take_sum(const Stretch& stretch, Bytes sum) {
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for_each_block(stretch, [&](std::int64_t block, std::span<float> v) {
      sum = sum.subspan(codec_.decode_sum(block, sum, v));
      codec_.clear_padding(block, v);
    });
  }
  require(sum.empty(), "{} bytes of an encoded sum are left over", sum.size());
  values_->put(stretch.segment, values_->packed(stretch.segment));
}

}  // namespace tandem
