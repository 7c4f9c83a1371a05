// PS-Sync on a server: takes every worker's gradient for its blocks, sums, updates, and answers
// with the new weights. A segment is answered as soon as all workers' gradients for it are in,
// while later ones are still arriving.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "autograd/sgd.h"
#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/strategy.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"

namespace tandem {

// Segments go to the servers in turn. They are short, because a server can answer one only when it
// has it from all workers; but a hundred of them will do.
inline Cut cut_for_servers(std::int64_t count, int servers) {
  return Cut(count, servers, std::clamp<std::int64_t>(count / kBlock / servers / 128, 4, 32));
}

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
  void begin_receive(Slot& slot, std::int64_t segment);
  void sum(Slot& slot, std::int64_t segment);
  void update(std::int64_t t, std::int64_t segment);
  void answer(Slot& slot, std::int64_t segment);

  Transport& transport_;
  int workers_;
  ParameterSet& parameters_;
  Sgd& optimizer_;
  const Compressor& compressor_;
  Spans& spans_;
  Cut cut_, ring_;  // into shares of servers; into those of a ring of the workers
  std::vector<std::int64_t> segments_;  // of this server
  std::vector<Slot> slots_;             // receives that are under way at the same time
};

}  // namespace tandem
