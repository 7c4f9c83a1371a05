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

const ConstPieces& place_in(const Request& received) {
  return *reinterpret_cast<const ConstPieces*>(received->message().data());
}

}  // namespace

SameNodeAllReduce::SameNodeAllReduce(const Group& group, const BlockRange& range,
                                     std::size_t stretch)
    : AllReduce(group, range),
      tag_(on_channel(Tag::ring, group.channel)),
      parts_(static_cast<std::size_t>(parts_of(group, range, stretch))),
      segments_(cut(group, range, parts_of(group, range, stretch))),
      places_(segments_.size()),
      values_(parts_),
      sums_(parts_) {}

void SameNodeAllReduce::run(Staging& values) {
  // The three phases work on different parts, so a rank waits only for a rank that is a whole part
  // behind.
  for (std::size_t part = 0; part < parts_ + 2; ++part) {
    if (part < parts_) lend(part, values);
    if (part > 0 && part <= parts_) reduce(part - 1, values);
    if (part > 1) gather(part - 2, values);
  }
  values.settle();
  for (auto& received : sums_) received.clear();
  for (Request& sent : sent_) group_.transport.wait(sent);
  sent_.clear();
}

// Tells the others where this rank's values are.
void SameNodeAllReduce::lend(std::size_t part, Staging& values) {
  for (int back = 1; back < group_.ranks; ++back) {
    const std::size_t i = segment(part, back);
    if (segments_[i].count == 0) continue;
    values.wait(i);
    places_[i] = values.packed(i);
    sent_.push_back(group_.transport.send(
        to_the_left(back), tag_, std::as_bytes(std::span(&places_[i], 1)), places_[i].bytes));
  }
  const std::size_t own = segment(part, group_.ranks);
  if (segments_[own].count == 0) return;
  values.wait(own);
  places_[own] = values.packed(own);
  for (int back = group_.ranks - 1; back > 0; --back)  // the right neighbour first
    values_[part].push_back(receive_from(to_the_left(back)));
}

// Adds up this rank's stretch, tells the others where the sum is, and posts receives for their
// sums. (All ranks send values and sums in the same order and receive them in that order.)
void SameNodeAllReduce::reduce(std::size_t part, Staging& values) {
  const std::size_t own = segment(part, group_.ranks);
  if (segments_[own].count > 0) {
    add_up(part, values);
    for (int back = group_.ranks - 1; back > 0; --back)
      sent_.push_back(group_.transport.send(
          to_the_left(back), tag_, std::as_bytes(std::span(&places_[own], 1)), places_[own].bytes));
    values_[part].clear();
    values.put(own, places_[own]);
  }
  for (int back = 1; back < group_.ranks; ++back) {
    const bool any = segments_[segment(part, back)].count > 0;
    sums_[part].push_back(any ? receive_from(to_the_left(back)) : nullptr);
  }
}

void SameNodeAllReduce::add_up(std::size_t part, Staging& values) {
  Transport& transport = group_.transport;
  const Compressor& compressor = group_.compressor;
  const std::size_t i = segment(part, group_.ranks);
  const Pieces own = values.packed(i);
  std::vector<ConstPieces> ranks(static_cast<std::size_t>(group_.ranks), own);
  for (Request& received : values_[part]) {
    transport.await(received);
    ranks[static_cast<std::size_t>(received->source)] = place_in(received);
  }
  if (group_.ranks == 1) return;
  const Spans::Scope span(group_.spans, adding(compressor.lossless()));
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t block = range_.first_block + (segments_[i].first + at) / kBlock;
      const std::int64_t n = std::min(kBlock, end - at);
      add_in_order(compressor, ranks, owner(block, group_.ranks), compressor.bytes(at), n,
                   own.at(compressor.bytes(at), compressor.bytes(n)));
    }
  };
  run_ranges(transport.helpers(), segments_[i].count, kBlock, add);
}

// Takes the sums from the ranks that computed them.
void SameNodeAllReduce::gather(std::size_t part, Staging& values) {
  for (int back = 1; back < group_.ranks; ++back) {
    Request& received = sums_[part][static_cast<std::size_t>(back - 1)];
    if (!received) continue;
    group_.transport.await(received);
    values.put(segment(part, back), place_in(received));
  }
}

Request SameNodeAllReduce::receive_from(int rank) {
  return group_.transport.receive_in_place(
      rank, tag_, std::as_writable_bytes(std::span<ConstPieces>(&read_in_place_, 1)));
}

// Cancels receives before sends: a send lasts until its receiver is cancelled.
void SameNodeAllReduce::give_up(Staging& values) {
  try {
    values.settle();
  } catch (const std::exception&) {  // a failed device no longer reads
  }
  for (auto* all : {&sums_, &values_})
    for (auto& received : *all) received.clear();
  sent_.clear();
}

}  // namespace tandem
