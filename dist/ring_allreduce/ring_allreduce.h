// Sums a range of the flat gradient over all ranks of a ring, with compression inside (Pipe-SGD,
// Fig. 2c and section 3.2). plan.h has the figure, README.md the cost.
//
// The ring works on packed bytes (tensor/staging.h), so the gradient may be in host or GPU memory.
// The ring waits for a segment's own values just before it needs them, and puts the sum back as
// soon as it has it. Messages are contiguous. Uncompressed values in host memory are not, so they
// are collected into a message and put back block by block.
#pragma once

#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "dist/all_reduce.h"
#include "dist/ring_allreduce/plan.h"

namespace tandem {

class RingAllReduce : public AllReduce {
 public:
  RingAllReduce(const Group& group, const BlockRange& range);

  const std::vector<Segment>& segments() const override { return plan_.segments; }

  // Runs a sum move by move, so that a caller can interleave several sums. Call start(), then
  // advance() until it returns false. advance() waits for awaited() and for no other message, so
  // the caller first waits until one of the sums' awaited() is done (Transport::await_any).
  void start(Staging& values);
  bool advance();
  Request& awaited();
  void give_up(Staging& values) override;

 private:
  void run(Staging& values) override;
  void begin_receive(std::size_t move);
  void prepare(std::size_t move);
  void make(std::size_t move);
  std::span<std::byte> buffer(std::size_t move, std::size_t bytes);
  bool may_post() const;

  int left_, right_;
  Tag tag_;
  RingPlan plan_;
  std::vector<std::size_t> starts_;  // by segment: its move in step 0, if it has one

  Staging* values_ = nullptr;
  std::size_t posted_ = 0, next_ = 0, drained_ = 0;  // moves
  std::vector<Request> received_, sent_;             // by move

  // Buffers for messages that are not sent or received in place. Moves use them in turn.
  std::size_t buffers_, buffer_bytes_ = 0;
  HugePages memory_;  // of all buffers; allocated at first use
};

}  // namespace tandem
