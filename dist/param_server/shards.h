// How a worker exchanges flat buffers with servers: in segments, each of which belongs to one
// server. All functions are jobs for the communication thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

// When a worker pushes its gradient: the values of --push.
enum class PushTime : std::int64_t { after_backward, during_backward };
PushTime push_time(const StrategyOptions& given);

// Segments of consecutive blocks, in the order in which workers push them. They are short because a
// server answers a segment only when it has all of it. About a hundred per server suffice. During
// backward, the last segment of the flat gradient is ready first, so it comes first.
std::vector<Segment> segments_for_servers(std::int64_t count, int servers, PushTime time);
// Those of the server with this number. Segment i of the flat gradient belongs to server i mod N,
// whenever it is pushed.
std::vector<Segment> segments_of_server(std::int64_t count, int servers, int number, PushTime time);
// Receives of so many segments are under way at a time.
inline constexpr std::size_t kSegmentsAhead = 4;

// Moves a buffer like the flat gradient between its device and the host.
std::unique_ptr<Staging> stage_for_servers(const StrategyContext& context,
                                           const Compressor& compressor);

// A strategy declares it after all memory that it receives to or sends from.
class Shards {
 public:
  explicit Shards(const StrategyContext& context);

  int servers() const { return servers_; }
  int first_server() const { return c_.workers; }
  // In the order of pushing.
  const std::vector<Segment>& segments() const { return segments_; }
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

  // For pushes during backward. Segments are pushed in their order, and their bytes must stay until
  // end_push(), which waits for all of them.
  void begin_push(std::int64_t t);
  void push_segment(std::size_t segment, std::span<const std::byte> bytes);
  void end_push();
  // Between begin_pull() and end_pull(): takes the segments that have come.
  void take_answers(Staging& to);
  // What may complete next: pushes, and the answer to a push.
  std::vector<Request*> in_flight();

 private:
  int server_of(std::size_t segment) const;
  void take_answer(Staging& to, Patience patience);
  Transport& transport() const { return c_.communication.transport(); }

  StrategyContext c_;
  int servers_;
  PushTime time_;
  std::vector<Segment> segments_;
  std::vector<std::vector<std::byte>> encoded_;  // by segment; empty without a codec
  std::vector<Request> pushed_, pulled_;         // by segment
  std::size_t begun_ = 0, sent_ = 0;             // pushes: begun, and of them known to be done
  std::size_t taken_ = 0;                        // segments that have been pulled
};

}  // namespace tandem
