// Sums a flat gradient over all ranks of a ring, with compression inside (Pipe-SGD, Fig. 2c and
// section 3.2). README.md has the picture and the cost.
//
// The ring works on compressed bytes in their place (tensor/staging.h), wherever the gradient
// lives: a segment's own values are waited for just before they are needed, and put back as soon as
// their sum is final.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/host_staging.h"
#include "dist/ring_allreduce/plan.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"

namespace tandem {

class RingAllReduce {
 public:
  // Ranks 0 … ranks-1 of the transport make the ring. The arguments must outlive it.
  RingAllReduce(Transport& transport, int ranks, const Compressor& compressor, Spans& spans);

  // How a gradient of `count` elements is cut, and in which order this rank needs its own values.
  const Segments& segments(std::int64_t count);
  // Replaces the values by their sum over all ranks, the same bits on every rank. They have begun,
  // with the segments that were asked for last. All ranks call it together, with the same count,
  // and all of them borrow or none.
  void sum(Staging& values);

  // Both for values in host memory.
  void sum(std::span<float> values);

 private:
  // What happens to the segment of one number in every share, one step after the other. When it has
  // gone round, the slot is free for one of the part after the next.
  struct Slot {
    std::vector<std::byte> partial;  // a sum that this rank's values are still missing from
    std::vector<Request> sent;       // by share; waited for when its memory is to be used again
    Request received;
  };

  // A complete sum that stays where its owner has it while others read it there: this rank's device
  // and its right neighbour.
  struct Loan {
    Request received;  // ends when this rank gives it back; none where this rank is the owner
    Request sent;      // done when the neighbour has given it back; none in the last step
  };

  void go_round(Staging& values);
  void give_up(Staging& values);
  void set_out(std::size_t part, Staging& values);
  void take_step(std::size_t step, std::size_t part, Staging& values);
  void send(int share, Slot& slot, std::span<const std::byte> bytes);
  void begin_receive(std::size_t step, std::size_t i, Slot& slot, Staging& values);
  void take_in(std::size_t step, std::size_t i, Slot& slot, Staging& values);
  void pass_on(std::size_t step, std::int64_t sum, Slot& slot, Staging& values);
  void return_loans(Staging& values);

  // Segment number i of a share; none if the share has fewer.
  std::optional<std::int64_t> segment(int share, std::size_t i) const;

  Transport& transport_;
  int ranks_, left_, right_;
  const Compressor& compressor_;
  Spans& spans_;
  HostStaging host_;
  std::vector<RingStep> plan_;

  Cut cut_;
  Segments segments_;
  std::vector<RingPart> parts_;
  // For parts of even and of odd number, as many as the longest needs.
  std::array<std::vector<Slot>, 2> slots_;
  std::vector<std::vector<Loan>> loans_;  // by step
};

}  // namespace tandem
