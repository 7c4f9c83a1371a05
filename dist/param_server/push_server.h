// A server that takes each worker's push when it arrives, without waiting for the other workers.
// The asynchronous algorithms with servers differ in what take() does. push_worker.h has the
// worker's side.
//
// In every iteration that pushes, a worker pushes all segments of this server in their order. So a
// push needs no header: what comes next from a worker is known. All else that a worker wants is a
// Notice.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "dist/strategy.h"
#include "dist/transport/transport.h"

namespace tandem {

// What a worker tells a server, besides pushes.
struct Notice {
  enum class Kind : std::int64_t {
    pull,   // it wants the weights
    keep,   // it wants the weights as they are now, to be tested later
    pause,  // it has pushed for all iterations up to its clock
  };
  Kind kind = Kind::pull;
  std::int64_t clock = 0;  // the worker's iterations that have pushed
};
// These messages are not part of the algorithm, and their bytes are not counted.
inline const Tag kNoticeTag = on_channel(Tag::control, 1), kKeptTag = on_channel(Tag::control, 2);

class PushServer : public Server {
 public:
  // As for ParameterServer (server.h).
  explicit PushServer(const StrategyContext& context);

  // Returns when every worker has pushed for its iteration `last`, and paused.
  void serve(std::int64_t first, std::int64_t last) override;
  // Sends the weights to all workers.
  void finish() override;
  void visit(State& state) override;

 protected:
  struct Push {
    int worker;
    std::int64_t iteration;  // the worker's
    const Segment& segment;
    std::span<const std::byte> bytes;
    bool completes;  // it is the worker's last push to this server in this iteration
  };
  virtual void take(const Push& push) = 0;
  // Whether workers push in this iteration.
  virtual bool pushes_in(std::int64_t iteration) const { return iteration > 0; }
  // A worker wants the weights.
  virtual void asked(int worker, std::int64_t clock) = 0;

  // Sends a copy of these weights, which may change meanwhile.
  void send_values(int worker, const Segment& segment, Tag tag = Tag::pull);
  void send_all_values(int worker, Tag tag = Tag::pull);
  // A part of a flat buffer, such as the weights.
  static Tensor part_of(const Tensor& flat, const Segment& segment);
  bool has_segments() const { return !segments_.empty(); }

  StrategyContext c_;
  Transport& transport_;

 private:
  struct Receive {
    std::vector<std::byte> memory;
    Request request;
  };
  struct Peer {                          // a worker
    std::int64_t iteration = 0;          // of its next push
    std::size_t segment = 0;             // of its next push
    std::int64_t to_receive = 0;         // pushes for which no receive is posted yet
    std::size_t next_received = 0;       // the segment of the next receive
    std::deque<Receive> receives = {};   // in the order of the pushes
    std::vector<std::byte> unused = {};  // memory of the last receive, for the next one
    Notice notice = {};                  // the next one
    Request noticed = {};                // empty: the worker has paused
  };
  struct Answer {
    Tensor values;
    Request request;
  };

  std::int64_t next_pushing(std::int64_t iteration) const;
  void receive_more(int worker);
  void receive_notice(int worker);
  void take_push(int worker);
  void take_notice(int worker, std::int64_t last);
  void drop_answers(bool all);

  std::vector<Segment> segments_;  // this server's
  std::deque<Answer> answers_;
  std::vector<Peer> peers_;
};

}  // namespace tandem
