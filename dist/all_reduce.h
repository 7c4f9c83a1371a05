// Sums a range of the flat gradient over all workers, so that everybody has the sum. There are two
// ways, with the same bits:
//   - the ring (ring_allreduce/ring_allreduce.h), over any network.
//   - the exchange on one node (ring_allreduce/same_node.h), where ranks share their memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/host_staging.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

class AllReduce {
 public:
  // Who sums: ranks 0 … ranks-1 of a transport, all with the same range, compressor and channel.
  // The members must outlive the sum.
  struct Group {
    Transport& transport;
    int ranks;
    const Compressor& compressor;
    Spans& spans;
    int channel = 0;  // sums under way at the same time use different ones
  };

  virtual ~AllReduce() = default;

  // The segments in which the values travel, in the order in which this rank needs its own.
  virtual const std::vector<Segment>& segments() const = 0;

  // Replaces the values by their sum over all ranks, the same bits on every rank. Call
  // values.begin() with segments() first, and values.finish() afterwards. All ranks call it
  // together.
  void sum(Staging& values);
  // The same for values in host memory, with begin() and finish().
  void sum(std::span<float> values);

 protected:
  explicit AllReduce(const Group& group, const BlockRange& range)
      : group_(group), range_(range), host_(group.compressor, group.spans) {}

  virtual void run(Staging& values) = 0;
  // Ends all sends and receives under way. Afterwards the caller may free the values.
  virtual void give_up(Staging& values) = 0;

  Group group_;
  BlockRange range_;

 private:
  HostStaging host_;
};

// The faster of the two.
std::unique_ptr<AllReduce> make_all_reduce(const AllReduce::Group& group, const BlockRange& range);

}  // namespace tandem
