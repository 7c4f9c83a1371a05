// Sums encoded gradients over all workers. Every worker encodes its values once and sends each
// block to the block's owner (dist/block.h). The owner decodes and adds them in the order of the
// ring, encodes the sum once, and sends it to all workers.
//
//   p = 3      rank 0                    rank 1                    rank 2
//   encode     share 1 ──▶ rank 1        share 2 ──▶ rank 2        share 0 ──▶ rank 0
//              share 2 ──▶ rank 2        share 0 ──▶ rank 0        share 1 ──▶ rank 1
//   add        share 0 of 1, 2, 0        share 1 of 2, 0, 1        share 2 of 0, 1, 2
//   encode     its sum ──▶ all           its sum ──▶ all           its sum ──▶ all
//
// A share is sent in stretches, so that a rank encodes one while another is on the network. (Over
// MPI, long messages move only while ranks wait.) An encoded stretch may have any length up to the
// largest that the codec names.
#pragma once

#include <vector>

#include "dist/all_reduce.h"
#include "dist/codecs/block_codec.h"

namespace tandem {

class BlockSum : public AllReduce {
 public:
  BlockSum(BlockCodec& codec, const Group& group, const BlockRange& range);

  const std::vector<Segment>& segments() const override { return segments_; }

 private:
  struct Message {
    std::vector<std::byte> memory;
    std::size_t bytes = 0;  // of the memory that are used

    std::span<const std::byte> content() const { return std::span(memory).first(bytes); }
  };
  struct Stretch {
    std::size_t segment = 0;
    std::int64_t first_block = 0;  // in the flat gradient; the next ones are p blocks apart
    int owner = 0;
    Message values;  // of this worker, encoded
    Request sent;
    Message sum;                                 // encoded by the owner
    std::vector<Request> sums;                   // the owner's sends, or the other workers' receive
    std::vector<std::vector<std::byte>> memory;  // by worker: what it sends to the owner
    std::vector<Request> received;               // by worker
  };

  void run(Staging& values) override;
  void give_up(Staging& values) override;

  void receive_all();
  void measure_norm(Staging& values);
  void encode(Stretch& stretch, Staging& values);
  void add_up(Stretch& stretch, Staging& values);
  void take_sum(Stretch& stretch, Staging& values, std::span<const std::byte> sum);

  // Calls f(number of the block, its values).
  template <class F>
  void for_each_block(const Stretch& stretch, const Pieces& values, F&& f) const;
  bool owns(const Stretch& stretch) const { return stretch.owner == self_; }

  BlockCodec& codec_;
  int self_;
  Tag values_tag_, sums_tag_;
  std::vector<Segment> segments_;
  std::vector<float> sum_;          // of a block
  std::vector<Stretch> stretches_;  // in the order of segments_
};

}  // namespace tandem
