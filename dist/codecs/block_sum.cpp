#include "dist/codecs/block_sum.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kStretch = 64;  // blocks

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

BlockSum::BlockSum(BlockCodec& codec, const Group& group, const BlockRange& range)
    : AllReduce(group, range),
      codec_(codec),
      self_(group.transport.rank()),
      values_tag_(on_channel(Tag::ring, group.channel)),
      sums_tag_(on_channel(Tag::ring, group.channel + kChannels / 2)),
      sum_(static_cast<std::size_t>(kBlock)) {
  require(group.compressor.lossless(), "a codec encodes plain values");
  const int p = group.ranks;
  const std::int64_t distance = p * kBlock;
  const std::int64_t longest = parts(range.blocks(), p);
  for (std::int64_t first = 0; first < longest; first += kStretch)
    for (int next = 1; next <= p; ++next) {  // this rank's own share comes last
      const int owner = (self_ + next) % p;
      const std::int64_t blocks = std::min(kStretch, range.blocks_of(owner, p) - first);
      if (blocks <= 0) continue;
      const std::int64_t block = range.first_of(owner, p) + first * p;
      const std::int64_t last = block + (blocks - 1) * p;
      const std::int64_t short_by = std::max<std::int64_t>(0, (last + 1) * kBlock - range.count);
      Stretch stretch;
      stretch.segment = segments_.size();
      stretch.first_block = range.first_block + block;
      stretch.owner = owner;
      const std::int64_t count = blocks * kBlock - short_by;
      segments_.push_back({.first = block * kBlock, .count = count, .step = distance});
      stretch.values.memory.resize(codec.most_bytes_of_run(count));
      stretch.sum.memory.resize(codec.most_sum_bytes_of_run(count));
      stretches_.push_back(std::move(stretch));
    }
  for (Stretch& stretch : stretches_)
    if (owns(stretch)) {
      stretch.memory.assign(static_cast<std::size_t>(p), {});
      stretch.received.resize(static_cast<std::size_t>(p));
      for (int worker = 0; worker < p; ++worker)
        if (worker != self_)
          stretch.memory[static_cast<std::size_t>(worker)].resize(stretch.values.memory.size());
    }
}

template <class F>
void BlockSum::for_each_block(const Stretch& stretch, const Pieces& values, F&& f) const {
  std::int64_t block = stretch.first_block;
  for (std::size_t at = 0; at < values.bytes; block += group_.ranks) {
    const std::size_t bytes = std::min(kBlock * sizeof(float), values.bytes - at);
    f(block, floats(values.at(at, bytes)));
    at += bytes;
  }
}

void BlockSum::run(Staging& values) {
  receive_all();
  if (codec_.needs_norm()) measure_norm(values);
  for (Stretch& stretch : stretches_) {
    encode(stretch, values);
    if (!owns(stretch))
      stretch.sent = group_.transport.send(stretch.owner, values_tag_, stretch.values.content());
  }
  for (Stretch& stretch : stretches_)
    if (owns(stretch)) add_up(stretch, values);
  for (Stretch& stretch : stretches_)
    if (!owns(stretch)) {
      Request& received = stretch.sums.front();
      group_.transport.await(received);
      take_sum(stretch, values, received->message());
    }
  for (Stretch& stretch : stretches_) {
    if (owns(stretch))
      for (Request& sent : stretch.sums) group_.transport.wait(sent);
    stretch.sums.clear();
    group_.transport.wait(stretch.sent);
  }
}

void BlockSum::receive_all() {
  for (Stretch& stretch : stretches_) {
    if (!owns(stretch)) {
      stretch.sums.push_back(
          group_.transport.receive(stretch.owner, sums_tag_, stretch.sum.memory));
      continue;
    }
    for (int worker = 0; worker < group_.ranks; ++worker)
      if (worker != self_) {
        const auto w = static_cast<std::size_t>(worker);
        stretch.received[w] =
            group_.transport.receive_in_place(worker, values_tag_, stretch.memory[w]);
      }
  }
}

void BlockSum::measure_norm(Staging& values) {
  double squares = 0;
  for (const Stretch& stretch : stretches_) {
    values.wait(stretch.segment);
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for_each_block(stretch, values.packed(stretch.segment), [&](std::int64_t, std::span<float> v) {
      for (const float x : v) squares += static_cast<double>(x) * x;
    });
  }
  codec_.set_norm(std::sqrt(squares));
}

void BlockSum::encode(Stretch& stretch, Staging& values) {
  if (!codec_.needs_norm()) values.wait(stretch.segment);  // else measure_norm() has waited
  const Spans::Scope span(group_.spans, SpanKind::compress);
  Message& message = stretch.values;
  message.bytes = 0;
  for_each_block(stretch, values.packed(stretch.segment),
                 [&](std::int64_t block, std::span<float> v) {
                   message.bytes += codec_.encode(block, v, message.memory.data() + message.bytes);
                 });
}

void BlockSum::add_up(Stretch& stretch, Staging& values) {
  std::vector<std::span<const std::byte>> rest;  // of each worker, in the order of the ring
  for (int hop = 1; hop <= group_.ranks; ++hop) {
    const auto worker = static_cast<std::size_t>((self_ + hop) % group_.ranks);
    if (hop == group_.ranks) {
      rest.push_back(stretch.values.content());
      continue;
    }
    group_.transport.await(stretch.received[worker]);
    rest.push_back(stretch.received[worker]->message());
  }
  Message& encoded = stretch.sum;
  encoded.bytes = 0;
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for_each_block(
        stretch, values.packed(stretch.segment), [&](std::int64_t block, std::span<float> v) {
          const std::span<float> sum = std::span(sum_).first(v.size());
          std::ranges::fill(sum, 0.0F);
          for (auto& message : rest) message = message.subspan(codec_.add(block, message, sum));
          encoded.bytes += codec_.encode_sum(block, sum, encoded.memory.data() + encoded.bytes);
        });
  }
  for (const auto& message : rest)
    require(message.empty(), "{} bytes of an encoded gradient are left over", message.size());
  for (Request& received : stretch.received) received.reset();
  for (int hop = 1; hop < group_.ranks; ++hop)
    stretch.sums.push_back(
        group_.transport.send((self_ + hop) % group_.ranks, sums_tag_, encoded.content()));
  take_sum(stretch, values, encoded.content());
}

void BlockSum::take_sum(Stretch& stretch, Staging& values, std::span<const std::byte> sum) {
  const Pieces packed = values.packed(stretch.segment);
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for_each_block(stretch, packed, [&](std::int64_t block, std::span<float> v) {
      sum = sum.subspan(codec_.decode_sum(block, sum, v));
      codec_.clear_padding(block, v);
    });
  }
  require(sum.empty(), "{} bytes of an encoded sum are left over", sum.size());
  values.put(stretch.segment, packed);
}

// Cancels receives before sends: a send lasts until its receiver is cancelled.
void BlockSum::give_up(Staging& values) {
  try {
    values.settle();
  } catch (const std::exception&) {  // a failed device no longer reads
  }
  for (Stretch& stretch : stretches_)
    for (Request& received : stretch.received) received.reset();
  for (Stretch& stretch : stretches_) {
    stretch.sums.clear();
    stretch.sent.reset();
  }
}

}  // namespace tandem
