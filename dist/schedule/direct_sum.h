// Sums slices of the flat gradient over all workers, the most urgent slice first.
//
// On a ring all workers must sum in the same order, so an urgent slice cannot overtake. Here there
// is no common order. A slice is cut into a stretch per worker. Every worker sends each stretch
// straight to the worker that adds it, which returns the sum:
//
//   slice            | stretch 0 | stretch 1 | stretch 2 |
//   worker 0           adds        ──push──▶   ──push──▶
//   worker 1           ◀──push──   adds        ──push──▶       then the sums go the other way
//   worker 2           ◀──push──   ◀──push──   adds
//
// That is as many bytes as on a ring, but 2 latencies instead of 2(p-1). The bits are those of the
// ring, because additions are in the order of the block's ring (dist/block.h).
//
// What has been handed to a network card cannot be overtaken. So a worker hands over only about two
// slices at a time and keeps the other messages in a queue, ordered by urgency.
//
// On a GPU the communication thread polls the events of ready gradients, because it also waits for
// messages.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "base/queue.h"
#include "dist/schedule/stages.h"
#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

struct Slice {
  std::size_t stage = 0;  // that it is a part of
  BlockRange range;
  std::int64_t rank = 0;  // in the order of urgency, from 0
};

class DirectSum {
 public:
  // All workers have the same stages and slices. The slices of a stage cover it, in order.
  DirectSum(const StrategyContext& context, const std::vector<Stage>& stages,
            const std::vector<Slice>& slices);

  // The compute thread calls begin() for every stage of an iteration, in any order, as soon as its
  // gradient is complete or queued on a GPU. It does not block.
  void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready);

  // The compute thread waits for the next stage that is summed, in no particular order. The sum
  // replaces the gradient after the event `ready`.
  struct Summed {
    static constexpr std::size_t kNone = ~std::size_t{0};
    std::size_t stage = kNone;  // kNone: all messages of an iteration have been sent and received
    EventPtr ready;
  };
  Summed take() { return summed_.take(); }

 private:
  using Bytes = std::vector<std::byte>;
  using SharedBytes = std::shared_ptr<Bytes>;

  struct Part {  // a slice, on this rank
    Slice slice;
    std::size_t first_segment = 0;    // in its stage; a segment is the stretch of a worker
    std::vector<SharedBytes> pushes;  // by worker: its values for this rank's stretch
    std::size_t missing = 0;          // pushes that have not come
  };
  struct StageState {
    BlockRange range;
    std::size_t first_part = 0, parts = 0;
    std::vector<Segment> segments;
    std::unique_ptr<Staging> staging;
    bool begun = false;    // in this iteration
    std::size_t left = 0;  // segments that are not summed yet
  };
  struct Begun {
    std::size_t stage;
    std::int64_t iteration;
    EventPtr ready;
  };
  // A message that waits for its turn.
  struct Outgoing {
    std::int64_t rank, number;  // the smallest is sent first
    Tag tag;
    int to;
    std::size_t part;
    SharedBytes sum;  // of this rank's stretch; null: a push, which is packed when it is sent

    bool operator<(const Outgoing& other) const {  // for std::priority_queue
      return std::pair(rank, number) > std::pair(other.rank, other.number);
    }
  };
  struct InTransit {
    SharedBytes bytes;
    Request request;  // last: cancelled before its memory is freed
  };
  // Messages with one tag from one worker. They come in the order in which it sends them, so each
  // message begins with the number of its slice.
  struct Incoming {
    int from;
    Tag tag;
    std::size_t per_iteration = 0, left = 0;
    std::deque<InTransit> receives;
  };

  void run();
  bool over() const;
  void begin_iteration();
  void take_begun();
  void start(const Begun& begun);
  void send_the_most_urgent();
  void receive_more();
  void wait();
  void deliver();
  void arrived(const Incoming& from, const SharedBytes& bytes);
  void add(std::size_t part);
  void put(std::size_t part, int adder, std::span<const std::byte> sum);

  std::size_t segment_of(const Part& part, int adder) const;
  bool empty(const Part& part, int adder) const;
  SharedBytes message(std::size_t part, std::span<const std::byte> payload) const;

  StrategyContext c_;
  Transport& transport_;
  int self_;
  std::vector<StageState> stages_;
  std::vector<Part> parts_;
  std::size_t largest_ = 0;  // bytes of a message
  std::size_t window_ = 0;   // bytes that may be in flight

  // Between the threads.
  std::size_t begun_in_iteration_ = 0;  // by the compute thread
  BlockingQueue<Begun> begun_;
  BlockingQueue<Summed> summed_;

  // Of the communication thread.
  std::deque<Begun> queued_;  // begun; the GPU may still compute them
  std::size_t not_begun_ = 0, not_summed_ = 0;
  std::priority_queue<Outgoing> outgoing_;
  std::int64_t messages_ = 0;  // numbers of messages
  std::size_t in_flight_ = 0;  // bytes
  std::deque<InTransit> sends_;
  std::deque<Incoming> incoming_;
};

}  // namespace tandem
