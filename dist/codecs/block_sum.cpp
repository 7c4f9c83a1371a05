#include "dist/codecs/block_sum.h"

#include <algorithm>
#include <deque>

#include "base/error.h"

namespace tandem {

BlockSum::BlockSum(BlockCodec& codec, const Group& group, const BlockRange& range,
                   std::int64_t most, std::size_t ahead)
    : AllReduce(group, range),
      codec_(codec),
      self_(group.transport.rank()),
      values_tag_(on_channel(Tag::ring, group.channel)),
      sums_tag_(on_channel(Tag::ring, group.channel + kChannels / 2)),
      ahead_(ahead) {
  require(group.compressor.lossless(), "a codec encodes plain values");
  const int p = group.ranks;
  const std::int64_t distance = p * kBlock;
  const std::int64_t longest = parts(range.blocks(), p);
  for (std::int64_t first = 0; first < longest; first += most)
    for (int next = 1; next <= p; ++next) {  // this rank's own share comes last
      const int owner = (self_ + next) % p;
      const std::int64_t blocks = std::min(most, range.blocks_of(owner, p) - first);
      if (blocks <= 0) continue;
      const std::int64_t block = range.first_of(owner, p) + first * p;
      const std::int64_t last = block + (blocks - 1) * p;
      const std::int64_t short_by = std::max<std::int64_t>(0, (last + 1) * kBlock - range.count);
      Stretch stretch;
      stretch.segment = segments_.size();
      stretch.first_block = range.first_block + block;
      stretch.owner = owner;
      if (owns(stretch)) stretch.received.resize(static_cast<std::size_t>(p));
      segments_.push_back(
          {.first = block * kBlock, .count = blocks * kBlock - short_by, .step = distance});
      stretches_.push_back(std::move(stretch));
    }
  encoded_.resize(stretches_.size());
}

void BlockSum::run(Staging& values) {
  begin(values);
  receive_all();
  for (Stretch& stretch : stretches_) {
    Bytes& encoded = encoded_[stretch.segment];
    encoded = encode(stretch);
    if (!owns(stretch)) stretch.sent = group_.transport.send(stretch.owner, values_tag_, encoded);
  }
  add_and_send_all();
  for (Stretch& stretch : stretches_)
    if (!owns(stretch)) {
      Request& received = stretch.sums.front();
      group_.transport.await(received);
      take_sum(stretch, received->message());
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
          group_.transport.receive(stretch.owner, sums_tag_, sum_memory(stretch)));
      continue;
    }
    for (int worker = 0; worker < group_.ranks; ++worker)
      if (worker != self_)
        stretch.received[static_cast<std::size_t>(worker)] =
            group_.transport.receive_in_place(worker, values_tag_, message_memory(stretch, worker));
  }
}

void BlockSum::add_and_send_all() {
  std::deque<Stretch*> added;
  for (Stretch& stretch : stretches_) {
    if (!owns(stretch)) continue;
    std::vector<Bytes> messages;  // in the order of the ring
    for (int hop = 1; hop < group_.ranks; ++hop) {
      Request& received = stretch.received[static_cast<std::size_t>((self_ + hop) % group_.ranks)];
      group_.transport.await(received);
      messages.push_back(received->message());
    }
    messages.push_back(encoded_[stretch.segment]);
    add_up(stretch, messages);
    added.push_back(&stretch);
    if (added.size() > ahead_) {
      send_sum(*added.front());
      added.pop_front();
    }
  }
  for (Stretch* stretch : added) send_sum(*stretch);
}

void BlockSum::send_sum(Stretch& stretch) {
  const Bytes sum = sum_of(stretch);
  for (Request& received : stretch.received) received.reset();
  for (int hop = 1; hop < group_.ranks; ++hop)
    stretch.sums.push_back(group_.transport.send((self_ + hop) % group_.ranks, sums_tag_, sum));
  take_sum(stretch, sum);
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
