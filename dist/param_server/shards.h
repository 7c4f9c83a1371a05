// How a worker exchanges flat buffers with servers: in segments, each of which belongs to one
// server. All functions are jobs for the communication thread.
#pragma once

#include <memory>
#include <vector>

#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

// Segments of consecutive blocks; segment i belongs to server i mod N. They are short because a
// server answers a segment only when it has all of it. About a hundred per server suffice.
std::vector<Segment> segments_for_servers(std::int64_t count, int servers);
// Those of the server with this number.
std::vector<Segment> segments_of_server(std::int64_t count, int servers, int number);

// Moves a buffer like the flat gradient between its device and the host.
std::unique_ptr<Staging> stage_for_servers(const StrategyContext& context,
                                           const Compressor& compressor);

// A strategy declares it after all memory that it receives to or sends from.
class Shards {
 public:
  explicit Shards(const StrategyContext& context);

  int servers() const { return servers_; }
  int first_server() const { return c_.workers; }
  // Forgets all messages, before their memory is freed. Only needed if the job has failed.
  void cancel();

  // A buffer and its way to the host.
  struct Staged {
    Staging& staging;
    const Tensor& values;
  };
  // Pushes the gradient, or what else is laid out like it, of iteration t. Throws Diverged if it is
  // not finite. If the servers answer pushes, receives their answer. After `ready`, the buffers may
  // be read and written; after the returned event, the answer is there.
  EventPtr push(std::int64_t t, const Staged& pushed, const Staged* answer, const EventPtr& ready);

  // Receives into `to`. After the returned event, the values are there.
  void begin_pull(Staging& to, const Tensor& values, const EventPtr& ready, Tag tag = Tag::pull);
  EventPtr end_pull(Staging& to, Patience patience = Patience::until_timeout);

 private:
  int server_of(std::size_t segment) const {
    return c_.workers + static_cast<int>(segment) % servers_;
  }
  Transport& transport() const { return c_.communication.transport(); }

  StrategyContext c_;
  int servers_;
  std::vector<Segment> segments_;
  std::vector<Request> pushed_, pulled_;  // by segment
};

}  // namespace tandem
