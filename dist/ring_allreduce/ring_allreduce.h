// Sums a flat gradient over all ranks of a ring, with compression inside (Pipe-SGD, Fig. 2c and
// section 3.2). README.md has the picture and the cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/ring_allreduce/plan.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"

namespace tandem {

class RingAllReduce {
 public:
  // Ranks 0 … ranks-1 of the transport make the ring. The arguments must outlive it.
  RingAllReduce(Transport& transport, int ranks, const Compressor& compressor, Spans& spans);

  // Replaces the values by their sum over all ranks, the same bits on every rank. All ranks call it
  // together, with the same count.
  void sum(std::span<float> values);

 private:
  // A segment's place in the pipeline: one buffer is being sent while the other one receives.
  struct Slot {
    std::vector<std::byte> sending, receiving;
    Request sent, received;
  };

  void plan_segments(std::int64_t count);
  std::span<std::byte> packed(std::vector<std::byte>& buffer, const Segment& segment) const;

  void add_own(const Segment& segment, std::span<float> values, std::span<std::byte> partial);

  Transport& transport_;
  int ranks_;
  const Compressor& compressor_;
  Spans& spans_;
  std::vector<RingStep> plan_;

  std::int64_t count_ = -1;                     // what the segments are cut for
  std::vector<std::vector<Segment>> segments_;  // of every share
  std::vector<Slot> slots_;
};

}  // namespace tandem
