// PS-Sync on a server: it receives every worker's gradient for its segments, sums them, updates the
// weights and sends them back. It answers a segment as soon as all workers have sent it, while
// later segments are still arriving.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/sgd.h"
#include "dist/compress/compressor.h"
#include "dist/param_server/shards.h"
#include "dist/strategy.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

class ParameterServer : public Server {
 public:
  // The last `servers` ranks are servers, including this one. `peers` are the workers that push:
  // all of them, or one per node (node_sum.h). The arguments must outlive the server.
  ParameterServer(Transport& transport, std::vector<int> peers, int servers,
                  ParameterSet& parameters, Sgd& optimizer, const Compressor& compressor,
                  Spans& spans, PushTime time = PushTime::after_backward);

  void serve(std::int64_t first, std::int64_t last) override;
  void visit(State& state) override;

 private:
  // The gradients of one segment from all workers, and the answer to them.
  struct Slot {
    std::vector<std::vector<std::byte>> gradients;  // by peer
    std::vector<Request> received;                  // by peer
    std::vector<Request> answered;                  // by peer
  };

  void wait_for_the_first(Slot& slot);
  void begin_receive(Slot& slot, const Segment& segment);
  void sum(Slot& slot, const Segment& segment);
  void update(std::int64_t t, const Segment& segment);
  void answer(Slot& slot, const Segment& segment);

  Transport& transport_;
  std::vector<int> peers_;
  ParameterSet& parameters_;
  Sgd& optimizer_;
  const Compressor& compressor_;
  Spans& spans_;
  Patience patience_;              // with workers that have begun to push
  std::vector<Segment> segments_;  // this server's
  std::vector<Slot> slots_;        // for segments received at the same time
};

}  // namespace tandem
