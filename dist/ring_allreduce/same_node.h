// Sums over ranks that are threads of one process and can read each other's memory. Each rank reads
// a range of consecutive blocks (a stretch) from all ranks and adds them up. Then all ranks read
// the sums from it. Every block is added in the order of the ring (dist/block.h), so the bits are
// the same as the ring's. But there are 2 steps instead of 2(p-1), and no partial sum is ever
// stored. (Papers call this local aggregation and use it within each machine of a cluster.)
//
//   rank 0   |b0|b1|b2|b3|b4|b5|…     rank 0 adds up b0 and b1:  b0 of ranks 1, 2, 0
//   rank 1   |b0|b1|b2|b3|b4|b5|…                                b1 of ranks 2, 0, 1
//   rank 2   |b0|b1|b2|b3|b4|b5|…     then ranks 1 and 2 read both sums from rank 0
//
// A message only says where the bytes are. Its send is done when the receiver has read them
// (receive_in_place() in transport.h). A long gradient is summed in parts, so that sums are read
// while they are still in the cache.
#pragma once

#include <vector>

#include "dist/all_reduce.h"

namespace tandem {

class SameNodeAllReduce : public AllReduce {
 public:
  // In each part, a rank adds up about `stretch` bytes.
  SameNodeAllReduce(const Group& group, const BlockRange& range, std::size_t stretch = 2 << 20);

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
  Request receive_from(int rank);

  Tag tag_;
  std::size_t parts_;
  std::vector<Segment> segments_;
  std::vector<ConstPieces> places_;  // by segment: where this rank's bytes are
  // By part: messages with the others' values, which this rank adds, and with the others' sums.
  std::vector<std::vector<Request>> values_, sums_;
  std::vector<Request> sent_;
  ConstPieces read_in_place_;  // never written, because messages are read in place
};

}  // namespace tandem
