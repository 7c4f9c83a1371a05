// Sums slices of the flat gradient over all workers, the most urgent slice first.
//
// On a ring all workers must sum in the same order, so an urgent slice cannot overtake. Here no
// common order is needed. A slice is cut into stretches, one per adder. Every worker sends each
// stretch straight to its adder, which adds them and returns the sum. The adders are servers, or
// the workers themselves, as in this picture:
//
//   slice            | stretch 0 | stretch 1 | stretch 2 |
//   worker 0           adds        ──push──▶   ──push──▶
//   worker 1           ◀──push──   adds        ──push──▶       then the sums go the other way
//   worker 2           ◀──push──   ◀──push──   adds
//
// Each worker sends as many bytes as on a ring, but a sum takes 2 latencies instead of 2(p-1). It
// has the same bits as on the ring, because the values of a block are added in the same order
// (dist/block.h).
//
// A message that has been handed to the NIC (network card) cannot be overtaken. So a rank limits
// the bytes in flight (window_of) and keeps the other messages in a queue, ordered by urgency.
//
// On a GPU, the communication thread polls the events that say when gradients are ready. It cannot
// sleep until one passes, because it must also wait for messages.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "base/queue.h"
#include "dist/schedule/merge.h"
#include "dist/schedule/slices.h"
#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"
#include "tensor/storage.h"

namespace tandem {

// The ranks that add, and when they send a sum.
struct Adders {
  int first = 0, count = 1;
  // True: an adder announces a sum, and sends it to each worker that requests it. False: it sends
  // the sum to all workers at once.
  bool on_request = false;

  bool include(int rank) const { return rank >= first && rank < first + count; }
};

// How many bytes a rank should have in flight. On a GPU: two slices. On a CPU: what the network
// carries in 8 ms, and at least a slice. Workers share cores there, so a communication thread that
// could send may have to wait for a core, and the network must not be idle meanwhile. In both cases
// at least what an emulated link carries in two latencies.
std::size_t window_of(const StrategyContext& context, const std::vector<Slice>& slices,
                      const SumCost& cost);

class DirectSum : public SliceSums {
 public:
  // All workers and adders must be given the same slices.
  DirectSum(const StrategyContext& context, const std::vector<Slice>& slices, const Adders& adders,
            std::size_t window);

  void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) override;

  // A server's part in one iteration, a job for its communication thread.
  void serve(std::int64_t iteration);

 private:
  // Its memory returns to the host_ of the rank that made it, with the last copy of the message.
  struct Message {
    Storage memory;
    std::span<std::byte> bytes;
  };
  // What a message is. The first two go to an adder, the others come from it.
  enum class Kind : std::uint64_t { values, request, announcement, sum };

  struct Part {  // a slice, on this rank
    Slice slice;
    std::size_t first_segment = 0;  // in its stage; a segment is the stretch of an adder
    std::vector<Message> pushes;    // by worker: its values for this rank's stretch
    std::size_t missing = 0;        // pushes that have not come
    Message sum;                    // of this rank's stretch
  };
  struct StageState {
    BlockRange range;
    std::size_t first_part = 0, parts = 0;
    std::vector<Segment> segments;
    std::unique_ptr<Staging> staging;  // of a worker
    bool begun = false;                // in this iteration
    std::size_t left = 0;              // segments that are not summed yet
  };
  struct Begun {
    std::size_t stage;
    std::int64_t iteration;
    EventPtr ready;
  };
  // A message that waits its turn. Its bytes are copied only when it is sent.
  struct Outgoing {
    std::int64_t rank, number;  // the smallest is sent first
    Kind kind;
    int to;
    std::size_t part;

    bool operator<(const Outgoing& other) const {  // for std::priority_queue
      return std::pair(rank, number) > std::pair(other.rank, other.number);
    }
  };
  struct InTransit {
    Message message;
    Request request;  // last: cancelled before its memory is freed
  };
  // Messages with one tag from one rank. They arrive in the order in which that rank sends them,
  // which this rank does not know. So each message begins with its kind and the number of its
  // slice.
  struct Incoming {
    int from;
    Tag tag;
    std::size_t per_iteration = 0, left = 0;
    std::deque<InTransit> receives;
  };

  void run() override;
  bool over() const;
  void begin_iteration();
  void take_begun();
  void start(const Begun& begun);
  void send_the_most_urgent();
  void receive_more();
  void wait();
  void deliver();
  // The end of the oldest sends, which wait() and deliver() look at.
  std::deque<InTransit>::iterator watched_end();
  void arrived(const InTransit& received);
  void add(std::size_t part);
  void put(std::size_t part, int adder, std::span<const std::byte> sum);

  bool works() const { return self_ < c_.workers; }
  std::size_t segment_of(const Part& part, int adder) const;
  bool empty(const Part& part, int adder) const;
  void queue(Kind kind, int to, std::size_t part);
  Message message_of(const Outgoing& outgoing);
  Message make_message(Kind kind, std::size_t part, std::size_t payload);
  Message new_message(std::size_t size);
  Message kept(const InTransit& received);

  // Keeps the memory of messages for the next ones: the kernel clears the pages of new memory,
  // which takes longer than a copy.
  Device host_ = cpu_device();
  Adders adders_;
  int self_;
  std::vector<StageState> stages_;
  std::vector<Part> parts_;
  std::size_t largest_ = 0;  // bytes of a message
  std::size_t window_;       // bytes that may be in flight

  BlockingQueue<Begun> begun_;  // by the compute thread

  // Of the communication thread.
  std::deque<Begun> queued_;  // begun; the GPU may still compute them
  std::size_t not_begun_ = 0;
  std::priority_queue<Outgoing> outgoing_;
  std::int64_t messages_ = 0;  // the number of the next message
  std::size_t in_flight_ = 0;  // bytes
  std::deque<InTransit> sends_;
  std::deque<Incoming> incoming_;  // last: a send may last until its receive is destroyed
};

// A server that only adds. The first iterations are d-sync's, which need no server. Then the first
// worker tells the servers its slices and its window.
class SumServer : public Server {
 public:
  SumServer(const StrategyContext& context, const Adders& adders) : c_(context), adders_(adders) {}

  void serve(std::int64_t first, std::int64_t last) override;
  void visit(State&) override {}  // nothing is in flight between iterations

  // The first worker calls it on its communication thread.
  static void tell(Transport& transport, const Adders& adders, const std::vector<Slice>& slices,
                   std::size_t window);

 private:
  void listen();

  StrategyContext c_;
  Adders adders_;
  std::int64_t step_ = 0;  // counts iterations from 1, since this object was made
  // What the first worker tells. Not in listen(): if the job fails there, MPI may still write it.
  struct Told {
    std::uint64_t slices = 0, window = 0;
  };
  Told told_;
  std::vector<Slice> slices_;
  std::unique_ptr<DirectSum> sums_;
};

}  // namespace tandem
