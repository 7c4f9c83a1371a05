// Sums a range of the flat gradient over all ranks of a ring, with compression inside (Pipe-SGD,
// Fig. 2c and section 3.2). plan.h has the figure, README.md the cost.
//
// The ring works on compressed bytes (tensor/staging.h), wherever the gradient lives: a segment's
// own values are waited for just before they are needed, and its sum is put back as soon as it is
// here. Messages are contiguous. Uncompressed values in host memory are not: they are collected
// into a message, and put back block by block.
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

  // A sum move by move, for several sums under way at the same time: start(), then advance() until
  // it returns false. Each call waits for awaited(), and for no other message. A caller with
  // several sums waits for any of their awaited() first (Transport::await_any).
  void start(Staging& values);
  bool advance();
  Request& awaited();
  void give_up(Staging& values) override;

 private:
  void run(Staging& values) override;
  void begin_receive(std::size_t move);
  void make(std::size_t move);
  std::span<std::byte> buffer(std::size_t move, std::size_t bytes);
  bool may_post() const;

  int left_, right_;
  Tag tag_;
  RingPlan plan_;
  std::vector<std::size_t> starts_;  // by segment: the move of step 0, if it has one

  Staging* values_ = nullptr;
  std::size_t posted_ = 0, next_ = 0, drained_ = 0;  // moves
  std::vector<Request> received_, sent_;             // by move

  // For messages that are not sent from their place. Moves use the buffers in turn.
  std::size_t buffers_, buffer_bytes_ = 0;
  HugePages memory_;  // of all buffers; allocated when the first one is used
};

}  // namespace tandem
