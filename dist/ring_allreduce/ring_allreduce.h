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
  // What happens to the segment of this number in every share, one step after the other: one buffer
  // is sent while the other one receives.
  struct Slot {
    std::vector<std::byte> sending, receiving;
    Request sent, received;
  };

  void prepare(std::int64_t count);
  void go_round(std::span<float> values);
  void send_own(std::size_t i, std::span<float> values);
  void begin_receive(std::size_t step, std::size_t i, std::span<float> values);
  void take_in(std::size_t step, std::size_t i, std::span<float> values);

  // Segment number i of a share; empty if the share has fewer.
  std::span<float> segment(int share, std::size_t i, std::span<float> values) const;
  // The part of a buffer that a segment takes.
  std::span<std::byte> packed(std::vector<std::byte>& buffer, std::span<const float> segment) const;

  Transport& transport_;
  int ranks_, left_, right_;
  const Compressor& compressor_;
  bool raw_;  // nothing is compressed: values are sent from their place, and sums received there
  Spans& spans_;
  std::vector<RingStep> plan_;

  Cut cut_;
  std::vector<Slot> slots_;
};

}  // namespace tandem
