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
//
// Where the values are encoded is up to HostBlockSum and DeviceBlockSum.
#pragma once

#include <vector>

#include "dist/all_reduce.h"
#include "dist/codecs/block_codec.h"

namespace tandem {

class BlockSum : public AllReduce {
 public:
  const std::vector<Segment>& segments() const override { return segments_; }

 protected:
  using Bytes = std::span<const std::byte>;
  struct Stretch {
    std::size_t segment = 0;
    std::int64_t first_block = 0;  // in the flat gradient; the next ones are p blocks apart
    int owner = 0;
    Request sent;                   // this worker's values
    std::vector<Request> received;  // the owner's, by worker
    std::vector<Request> sums;      // the owner's sends, or the other workers' receive
  };

  // A stretch has up to so many blocks. A sum is sent when `ahead` more have been added.
  BlockSum(BlockCodec& codec, const Group& group, const BlockRange& range, std::int64_t blocks,
           std::size_t ahead);

  // Where the owner receives a worker's values, and other workers the sum.
  virtual std::span<std::byte> message_memory(const Stretch& stretch, int worker) = 0;
  virtual std::span<std::byte> sum_memory(const Stretch& stretch) = 0;

  // A sum takes these steps. The messages of all workers, in the order of the ring, stay until
  // sum_of() returns the encoded sum.
  virtual void begin(Staging& values) = 0;
  virtual Bytes encode(const Stretch& stretch) = 0;
  virtual void add_up(const Stretch& stretch, const std::vector<Bytes>& messages) = 0;
  virtual Bytes sum_of(const Stretch& stretch) = 0;
  virtual void take_sum(const Stretch& stretch, Bytes sum) = 0;

  bool owns(const Stretch& stretch) const { return stretch.owner == self_; }

  BlockCodec& codec_;
  int self_;
  std::vector<Segment> segments_;
  std::vector<Stretch> stretches_;  // in the order of segments_

 private:
  void run(Staging& values) override;
  void give_up(Staging& values) override;

  void receive_all();
  void add_and_send_all();
  void send_sum(Stretch& stretch);

  Tag values_tag_, sums_tag_;
  std::size_t ahead_;
  std::vector<Bytes> encoded_;  // by stretch
};

}  // namespace tandem
