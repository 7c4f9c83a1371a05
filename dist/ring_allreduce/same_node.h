// Sums over ranks on one machine, without a ring. Each rank gets a range of consecutive blocks (a
// stretch) from all ranks and adds them up. Then all ranks get the sums from it. Every block is
// added in the order of the ring (dist/block.h), so the bits are the same as the ring's. The bytes
// are the same too, but there are 2 steps instead of 2(p-1), no partial sum is ever stored, and
// messages are contiguous. (Papers call this local aggregation and use it within each machine of a
// cluster.)
//
//   rank 0   |b0|b1|b2|b3|b4|b5|…     rank 0 adds up b0 and b1:  b0 of ranks 1, 2, 0
//   rank 1   |b0|b1|b2|b3|b4|b5|…                                b1 of ranks 2, 0, 1
//   rank 2   |b0|b1|b2|b3|b4|b5|…     then ranks 1 and 2 get both sums from rank 0
//
// Threads of one process read messages in the sender's memory, so nothing is copied but the sums
// (receive_in_place() in transport.h). A long gradient is summed in parts, so that sums are read
// while they are still in the cache.
#pragma once

#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "dist/all_reduce.h"

namespace tandem {

class SameNodeAllReduce : public AllReduce {
 public:
  // In each part, a rank adds up about `stretch` bytes.
  SameNodeAllReduce(const Group& group, const BlockRange& range, std::size_t stretch);

  const std::vector<Segment>& segments() const override { return segments_; }

 private:
  void run(Staging& values) override;
  void give_up(Staging& values) override;

  void lend(std::size_t part, Staging& values);
  void reduce(std::size_t part, Staging& values);
  void add_up(std::size_t part, Staging& values);
  void gather(std::size_t part, Staging& values);

  // The segment of a part that the rank `back` steps to the left adds up; back = p is this rank.
  std::size_t segment(std::size_t part, int back) const {
    return part * static_cast<std::size_t>(group_.ranks) + static_cast<std::size_t>(back - 1);
  }
  int to_the_left(int back) const {
    return (group_.transport.rank() + group_.ranks - back) % group_.ranks;
  }
  std::span<std::byte> buffer(std::size_t part, int back, std::size_t bytes);

  Tag values_tag_, sums_tag_;
  std::size_t parts_;
  std::vector<Segment> segments_;
  std::vector<std::vector<Request>> values_;  // by part: the others' values, which this rank adds
  // By segment: this rank's values, sent to the rank that adds them, and the sum that it sends
  // back.
  std::vector<Request> lent_, sums_;
  std::vector<Request> sent_;  // sums
  // For the values of two parts, from a transport that does not read in place.
  std::size_t buffer_bytes_ = 0;
  HugePages memory_;
};

}  // namespace tandem
