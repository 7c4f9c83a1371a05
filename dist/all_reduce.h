// Sums a range of the flat gradient over all workers; every worker gets the sum. There are two
// implementations with the same bits:
//   - the ring (ring_allreduce/ring_allreduce.h), for any network.
//   - the exchange on one node (ring_allreduce/same_node.h), for ranks on one machine.
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
  // The participants: ranks 0 … ranks-1 of a transport, all with the same range, compressor and
  // channel. The references must outlive the AllReduce.
  struct Group {
    Transport& transport;
    int ranks;
    const Compressor& compressor;
    Spans& spans;
    int channel = 0;  // below kChannels / 2; concurrent sums need different channels
    // Over an emulated link, sums of M bytes take a + bM, as schedules of buckets assume. Sums of
    // medium length then take longer, because their latencies are not hidden.
    bool linear = false;
  };

  virtual ~AllReduce() = default;

  // The values are sent in these segments. Their order is the one in which this rank needs its own
  // values.
  virtual const std::vector<Segment>& segments() const = 0;

  // The staging for values that are encoded on their device; null if any other staging will do.
  virtual std::unique_ptr<Staging> make_staging() const { return nullptr; }

  // Replaces the values by their sum over all ranks, the same bits on every rank. Call
  // values.begin() with segments() first, and values.finish() afterwards. All ranks must call it.
  void sum(Staging& values);
  // The same for values in host memory; includes begin() and finish().
  void sum(std::span<float> values);

 protected:
  AllReduce(const Group& group, const BlockRange& range)
      : group_(group), range_(range), host_(group.compressor, group.spans) {}

  virtual void run(Staging& values) = 0;
  // Cancels all sends and receives. Afterwards the caller may free the values.
  virtual void give_up(Staging& values) = 0;

  Group group_;
  BlockRange range_;

 private:
  HostStaging host_;
};

// Chooses the faster implementation.
std::unique_ptr<AllReduce> make_all_reduce(const AllReduce::Group& group, const BlockRange& range);

}  // namespace tandem
