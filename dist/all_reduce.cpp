#include "dist/all_reduce.h"

#include "base/error.h"
#include "dist/ring_allreduce/ring_allreduce.h"
#include "dist/ring_allreduce/same_node.h"

namespace tandem {

void AllReduce::sum(std::span<float> values) {
  require(std::ssize(values) == range_.count, "{} values instead of {}", values.size(),
          range_.count);
  host_.begin(values, segments());
  sum(host_);
  host_.finish();
}

void AllReduce::sum(Staging& values) {
  const Spans::Scope span(group_.spans, SpanKind::communicate);
  try {
    run(values);
  } catch (const JobFailed&) {
    give_up(values);
    throw;
  } catch (const std::exception& e) {
    // Fail the job before giving up. Otherwise another rank could match a later message with a
    // receive whose own message was cancelled.
    group_.transport.fail(e.what());
    give_up(values);
    throw;
  }
}

std::unique_ptr<AllReduce> make_all_reduce(const AllReduce::Group& group, const BlockRange& range) {
  // For two ranks and few blocks the ring is faster: 2 messages in sequence instead of 3.
  const bool short_pair = group.ranks == 2 && range.blocks() <= 4;
  // What is copied should stay in the L2 cache until it is added.
  const std::size_t stretch = group.transport.reads_in_place() ? 2 << 20 : 256 << 10;
  if (group.transport.on_one_node() && !short_pair)
    return std::make_unique<SameNodeAllReduce>(group, range, stretch);
  return std::make_unique<RingAllReduce>(group, range);
}

}  // namespace tandem
