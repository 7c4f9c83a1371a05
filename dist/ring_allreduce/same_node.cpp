#include "dist/ring_allreduce/same_node.h"

#include <algorithm>

#include "dist/compress/hop.h"

namespace tandem {
namespace {

std::int64_t parts_of(const AllReduce::Group& group, const BlockRange& range, std::size_t stretch) {
  const std::size_t share =
      group.compressor.bytes(range.count) / static_cast<std::size_t>(group.ranks);
  return static_cast<std::int64_t>(std::max<std::size_t>(1, share / stretch));
}

// Every part has a stretch for each rank. They are ordered from the left neighbour round to this
// rank.
std::vector<Segment> cut(const AllReduce::Group& group, const BlockRange& range,
                         std::int64_t parts) {
  const std::int64_t blocks = range.blocks(), stretches = parts * group.ranks;
  const auto first = [&](std::int64_t i) { return i * blocks / stretches * kBlock; };
  std::vector<Segment> segments;
  for (std::int64_t part = 0; part < stretches; part += group.ranks)
    for (int back = 1; back <= group.ranks; ++back) {
      const std::int64_t i = part + (group.transport.rank() + group.ranks - back) % group.ranks;
      segments.push_back({.first = first(i),
                          .count = std::min(first(i + 1), range.count) - first(i),
                          .step = kBlock});
    }
  return segments;
}

}  // namespace

SameNodeAllReduce::SameNodeAllReduce(const Group& group, const BlockRange& range,
                                     std::size_t stretch)
    : AllReduce(group, range),
      values_tag_(on_channel(Tag::ring, group.channel)),
      sums_tag_(on_channel(Tag::ring, group.channel + kChannels / 2)),
      parts_(static_cast<std::size_t>(parts_of(group, range, stretch))),
      segments_(cut(group, range, static_cast<std::int64_t>(parts_))),
      values_(parts_),
      lent_(segments_.size()),
      sums_(segments_.size()) {
  for (const Segment& segment : segments_)
    buffer_bytes_ = std::max(buffer_bytes_, group.compressor.bytes(segment.count));
}

void SameNodeAllReduce::run(Staging& values) {
  // The three phases work on different parts, so a rank waits only for a rank that is a whole part
  // behind.
  for (std::size_t part = 0; part < parts_ + 2; ++part) {
    if (part < parts_) lend(part, values);
    if (part > 0 && part <= parts_) reduce(part - 1, values);
    if (part > 1) gather(part - 2, values);
  }
  values.settle();
  for (Request& received : sums_) received.reset();
  for (Request& sent : sent_) group_.transport.wait(sent);
  sent_.clear();
}

// Sends this rank's values to the ranks that add them, and begins to receive those that it adds.
void SameNodeAllReduce::lend(std::size_t part, Staging& values) {
  for (int back = 1; back < group_.ranks; ++back) {
    const std::size_t i = segment(part, back);
    if (segments_[i].count == 0) continue;
    values.wait(i);
    lent_[i] = group_.transport.send(to_the_left(back), values_tag_, values.packed(i).whole());
  }
  const std::size_t own = segment(part, group_.ranks);
  if (segments_[own].count == 0) return;
  values.wait(own);
  for (int back = group_.ranks - 1; back > 0; --back)  // the right neighbour first
    values_[part].push_back(group_.transport.receive_in_place(
        to_the_left(back), values_tag_, buffer(part, back, values.packed(own).bytes)));
}

// Adds up this rank's stretch and sends the sum to all others.
void SameNodeAllReduce::reduce(std::size_t part, Staging& values) {
  const std::size_t own = segment(part, group_.ranks);
  if (segments_[own].count == 0) return;
  add_up(part, values);
  const std::span<std::byte> sum = values.packed(own).whole();
  for (int back = group_.ranks - 1; back > 0; --back)
    sent_.push_back(group_.transport.send(to_the_left(back), sums_tag_, sum));
  values_[part].clear();
  values.put(own, sum);
}

void SameNodeAllReduce::add_up(std::size_t part, Staging& values) {
  Transport& transport = group_.transport;
  const Compressor& compressor = group_.compressor;
  const std::size_t i = segment(part, group_.ranks);
  const Pieces own = values.packed(i);
  std::vector<ConstPieces> ranks(static_cast<std::size_t>(group_.ranks), own);
  for (Request& received : values_[part]) {
    transport.await(received);
    ranks[static_cast<std::size_t>(received->source)] = received->message();
  }
  if (group_.ranks == 1) return;
  const Spans::Scope span(group_.spans, adding(compressor.lossless()));
  add_blocks(compressor, ranks, range_.first_block + segments_[i].first / kBlock,
             segments_[i].count, own, transport.helpers());
}

// Takes the sums from the ranks that computed them. A sum replaces the values that this rank lent,
// so these must have been read.
void SameNodeAllReduce::gather(std::size_t part, Staging& values) {
  for (int back = 1; back < group_.ranks; ++back) {
    const std::size_t i = segment(part, back);
    if (segments_[i].count == 0) continue;
    group_.transport.wait(lent_[i]);
    sums_[i] =
        group_.transport.receive_in_place(to_the_left(back), sums_tag_, values.packed(i).whole());
  }
  for (int back = 1; back < group_.ranks; ++back) {
    const std::size_t i = segment(part, back);
    if (!sums_[i]) continue;
    group_.transport.await(sums_[i]);
    values.put(i, sums_[i]->message());
  }
}

std::span<std::byte> SameNodeAllReduce::buffer(std::size_t part, int back, std::size_t bytes) {
  const auto others = static_cast<std::size_t>(group_.ranks - 1);
  if (memory_.span().empty()) memory_ = group_.compressor.memory(2 * others * buffer_bytes_);
  const std::size_t i = part % 2 * others + static_cast<std::size_t>(back - 1);
  return memory_.span().subspan(i * buffer_bytes_, bytes);
}

// Cancels receives before sends: a send lasts until its receiver is cancelled.
void SameNodeAllReduce::give_up(Staging& values) {
  try {
    values.settle();
  } catch (const std::exception&) {  // a failed device no longer reads
  }
  for (Request& received : sums_) received.reset();
  for (auto& received : values_) received.clear();
  for (Request& lent : lent_) lent.reset();
  sent_.clear();
}

}  // namespace tandem
