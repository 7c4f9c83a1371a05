// PS-Sync on a server: takes every worker's gradient for its blocks, sums, updates, and answers
// with the new weights. A segment is answered as soon as all workers' gradients for it are in,
// while later ones are still arriving.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/sgd.h"
#include "dist/compress/compressor.h"
#include "dist/strategy.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

// Consecutive blocks; segment i belongs to server i mod N. They are short because a server answers
// one only when all workers have sent it; about a hundred per server suffice.
std::vector<Segment> segments_for_servers(std::int64_t count, int servers);

class ParameterServer : public Server {
 public:
  // Holds the share of this transport's rank among `servers` servers of `workers` workers. The
  // arguments must outlive the server.
  ParameterServer(Transport& transport, int workers, int servers, ParameterSet& parameters,
                  Sgd& optimizer, const Compressor& compressor, Spans& spans);

  void serve(std::int64_t first, std::int64_t last) override;
  void visit(State& state) override;

 private:
  // The gradients of one segment from all workers, and the answer to them.
  struct Slot {
    std::vector<std::vector<std::byte>> gradients;  // by worker
    std::vector<Request> received;                  // likewise
    std::vector<Request> answered;                  // likewise
  };

  void wait_for_the_first(Slot& slot);
  void begin_receive(Slot& slot, const Segment& segment);
  void sum(Slot& slot, const Segment& segment);
  void update(std::int64_t t, const Segment& segment);
  void answer(Slot& slot, const Segment& segment);

  Transport& transport_;
  int workers_;
  ParameterSet& parameters_;
  Sgd& optimizer_;
  const Compressor& compressor_;
  Spans& spans_;
  std::vector<Segment> segments_;  // of this server
  std::vector<Slot> slots_;        // receives that are under way at the same time
};

}  // namespace tandem
