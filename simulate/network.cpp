#include "simulate/network.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "base/virtual_time.h"
#include "dist/transport/link.h"
#include "dist/transport/threads.h"

namespace tandem {

struct SimulatedNetwork::Nic {
  LinkSpeed speed;
  bool noted = false;                   // use() is about it
  Clock::time_point out_free, in_free;  // when each direction is free again
  // What it sends and receives, the current message first. Only that one has events: of the
  // hundreds of thousands that may wait, most would make the queue of events long.
  std::deque<Message*> out, in;

  Clock::duration passing_time(std::size_t bytes) const {
    return speed.limited() ? from_seconds(static_cast<double>(bytes) / speed.bytes_per_s)
                           : Clock::duration{};
  }
};

// From when it is sent until it has left, is complete at its receiver and has been matched with a
// receive.
struct SimulatedNetwork::Message {
  SimulatedNetwork* network = nullptr;
  int from = 0, to = 0;
  Tag tag{};
  std::size_t bytes = 0;
  Nic *out = nullptr, *in = nullptr;
  Clock::time_point arrival;    // of its first frame
  Clock::time_point all_there;  // not before all of it has left and come over
  Clock::time_point leaves, completes;
  SendOperation* send = nullptr;        // null once that is destroyed
  ReceiveOperation* receive = nullptr;  // null until it is matched
  std::uint64_t number = 0;             // in the order of sending
  bool left = false, complete = false, matched = false;
};

struct SimulatedNetwork::SendOperation final : Operation {
  SendOperation(int to, Tag what, std::span<const std::byte> bytes_of)
      : Operation(Kind::send, to, what, bytes_of.size()), memory(bytes_of.data()) {}
  ~SendOperation() override;

  bool done() const { return left && matched && !borrower; }

  const std::byte* memory;
  Message* message = nullptr;  // null once that has ended
  int rank = 0;
  bool left = false, matched = false, awaited = false;
  ReceiveOperation* borrower = nullptr;  // a receive that reads the message in the sender's memory
};

struct SimulatedNetwork::ReceiveOperation final : Operation {
  ReceiveOperation(int from, Tag what, std::span<std::byte> bytes_of, bool reads_in_place,
                   SimulatedNetwork& of, int begun_by)
      : Operation(Kind::receive, from, what, bytes_of.size()),
        memory(bytes_of.data()),
        in_place(reads_in_place),
        network(of),
        rank(begun_by) {
    data = memory;
  }
  ~ReceiveOperation() override;

  std::byte* memory;
  bool in_place;
  SimulatedNetwork& network;
  int rank;
  std::uint64_t number = 0;  // in the order of the calls
  bool is_done = false, awaited = false;
  Message* message = nullptr;       // once it is matched, until it is done
  SendOperation* lender = nullptr;  // the send whose memory it reads
};

struct SimulatedNetwork::Rank {
  // What has no counterpart yet, of one tag. By the sender, oldest first.
  struct Queues {
    std::unordered_map<int, std::deque<Message*>> messages;
    std::unordered_map<int, std::deque<ReceiveOperation*>> receives;  // also from kAnyRank

    // The oldest message from this rank, which leaves its queue; null if there is none.
    Message* take_message(int from);
    // The same for the receive that a message from this rank belongs to.
    ReceiveOperation* take_receive(int from);
  };

  Queues& of(Tag tag) {
    const auto index = static_cast<std::size_t>(tag);
    if (index >= queues.size()) queues.resize(index + 1);
    return queues[index];
  }

  std::vector<Queues> queues;
  VirtualTime::Waiting waiting;  // its communication thread
  bool woken = false;
  Sign sign{Sign::State::silent};
};

namespace {

// The first element of the queue with this key, which may be missing or empty.
template <class T>
T* front(const std::unordered_map<int, std::deque<T*>>& queues, int key) {
  const auto queue = queues.find(key);
  return queue == queues.end() || queue->second.empty() ? nullptr : queue->second.front();
}

}  // namespace

SimulatedNetwork::Message* SimulatedNetwork::Rank::Queues::take_message(int from) {
  Message* oldest = front(messages, from);
  if (from == kAnyRank)
    for (const auto& [sender, queue] : messages)
      if (!queue.empty() && (!oldest || queue.front()->number < oldest->number))
        oldest = queue.front();
  if (oldest) messages[oldest->from].pop_front();
  return oldest;
}

SimulatedNetwork::ReceiveOperation* SimulatedNetwork::Rank::Queues::take_receive(int from) {
  ReceiveOperation *own = front(receives, from), *any = front(receives, kAnyRank);
  ReceiveOperation* const oldest = !own || (any && any->number < own->number) ? any : own;
  if (oldest) receives[oldest->peer].pop_front();
  return oldest;
}

SimulatedNetwork::SendOperation::~SendOperation() {
  if (message) message->send = nullptr;
  if (borrower) borrower->lender = nullptr;
}

SimulatedNetwork::ReceiveOperation::~ReceiveOperation() {
  if (message) message->receive = nullptr;
  if (!message && !is_done)
    std::erase(network.ranks_[static_cast<std::size_t>(rank)]->of(tag).receives[peer], this);
  if (!lender) return;
  // The message has been read.
  if (VirtualTime* time = VirtualTime::here()) time->meet();
  if (!lender) return;
  lender->borrower = nullptr;
  if (lender->awaited && lender->done()) network.wake(lender->rank);
}

class SimulatedTransport : public Transport {
 public:
  SimulatedTransport(SimulatedNetwork& network, int rank)
      : network_(network), own_(*network.ranks_[static_cast<std::size_t>(rank)]), rank_(rank) {
    own_.sign = {Sign::State::busy};
  }
  ~SimulatedTransport() override { own_.sign = {Sign::State::silent}; }

  int rank() const override { return rank_; }
  int size() const override { return network_.shape_.ranks; }
  int node(int rank) const override { return rank / network_.shape_.ranks_per_node; }
  std::size_t bytes_in_flight() const override {
    constexpr auto kBelow = ThreadsNetwork::kBytesPerCore;
    return limited() ? tandem::bytes_in_flight(network_.shape_.link, kBelow) : kBelow;
  }
  std::size_t latency_bytes() const override {
    return limited() ? tandem::latency_bytes(network_.shape_.link) : 0;
  }
  bool on_one_node() const override { return !limited(); }
  bool stands_for_all() const override { return network_.shape_.one_for_all; }
  bool reads_in_place() const override { return !limited(); }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes,
                     const Storage& owner) override {
    check(to);
    time().meet();
    auto own = std::make_unique<SimulatedNetwork::SendOperation>(to, tag, bytes);
    own->owner = owner;
    own->rank = rank_;
    network_.send(*own, to, bytes.size());
    return own;
  }
  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return begin_receive(from, tag, bytes, false);
  }
  Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) override {
    return begin_receive(from, tag, bytes, true);
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point until) override {
    time().meet();
    for (;;) {
      if (network_.failed_) throw JobFailed(network_.reason_);
      if (any_done(requests)) return true;
      if (std::exchange(own_.woken, false) || Clock::now() >= until) return false;
      await(requests, true);
      time().wait(own_.waiting, until);
      await(requests, false);
    }
  }
  bool done(const Request& request) const override {
    if (!request) return true;
    return request->kind == Operation::Kind::send
               ? static_cast<const SimulatedNetwork::SendOperation&>(*request).done()
               : static_cast<const SimulatedNetwork::ReceiveOperation&>(*request).is_done;
  }
  void wake() override {
    time().meet();
    own_.woken = true;
    network_.wake(rank_);
  }
  void fail(const std::string& reason) override {
    time().meet();
    network_.fail(reason);
  }

  void show(const Sign& sign) override { own_.sign = sign; }
  void ask(const Sign&, bool) override {}  // all states are at hand
  std::vector<Sign> signs(Clock::time_point) const override {
    std::vector<Sign> all;
    for (const auto& rank : network_.ranks_) all.push_back(rank->sign);
    all.resize(static_cast<std::size_t>(size()), {Sign::State::busy});  // those it stands for
    return all;
  }
  Clock::duration answer_time() const override { return 2 * slice(); }
  bool left_to_another() const override { return false; }

 private:
  static VirtualTime& time() { return *VirtualTime::here(); }
  bool limited() const { return network_.shape_.link.limited(); }

  void check(int peer) const {
    require(peer < size() && peer != rank_ && peer >= 0, "rank {} addressed rank {} of {}", rank_,
            peer, size());
  }

  Request begin_receive(int from, Tag tag, std::span<std::byte> bytes, bool in_place) {
    if (from != kAnyRank) check(from);
    time().meet();
    if (network_.failed_) throw JobFailed(network_.reason_);
    auto own = std::make_unique<SimulatedNetwork::ReceiveOperation>(from, tag, bytes, in_place,
                                                                    network_, rank_);
    own->number = network_.operations_++;
    auto& queues = own_.of(tag);
    if (auto* message = queues.take_message(from))
      network_.match(*message, *own);
    else
      queues.receives[from].push_back(own.get());
    return own;
  }

  // Says whether this rank waits for these requests: only then they wake it.
  static void await(std::span<Request* const> requests, bool awaits) {
    for (Request* request : requests)
      if ((*request)->kind == Operation::Kind::send)
        static_cast<SimulatedNetwork::SendOperation&>(**request).awaited = awaits;
      else
        static_cast<SimulatedNetwork::ReceiveOperation&>(**request).awaited = awaits;
  }

  SimulatedNetwork& network_;
  SimulatedNetwork::Rank& own_;
  int rank_;
};

SimulatedNetwork::SimulatedNetwork(const NetworkShape& shape) : shape_(shape) {
  const int simulated = shape.one_for_all ? 1 : shape.ranks;
  for (int rank = 0; rank < simulated; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    inner_.push_back(std::make_unique<Nic>(Nic{.speed = shape.inner}));
    if (rank % shape.ranks_per_node == 0)
      outer_.push_back(std::make_unique<Nic>(Nic{.speed = shape.link, .noted = rank == 0}));
  }
  for (const auto& [rank, speed] : shape.other_links)
    outer_.at(static_cast<std::size_t>(rank / shape.ranks_per_node))->speed = speed;
}

SimulatedNetwork::~SimulatedNetwork() = default;

std::unique_ptr<Transport> SimulatedNetwork::transport(int rank) {
  return std::make_unique<SimulatedTransport>(*this, rank);
}

void SimulatedNetwork::fail(const std::string& reason) {
  if (!std::exchange(failed_, true)) reason_ = reason;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) wake(static_cast<int>(rank));
}

void SimulatedNetwork::wake(int rank) {
  VirtualTime::here()->wake(ranks_[static_cast<std::size_t>(rank)]->waiting);
}

// The NIC through which a rank talks to another one.
SimulatedNetwork::Nic& SimulatedNetwork::nic(int rank, int peer) {
  const int node = rank / shape_.ranks_per_node;
  if (shape_.ranks_per_node > 1 && node == peer / shape_.ranks_per_node)
    return *inner_[static_cast<std::size_t>(rank)];
  return *outer_[static_cast<std::size_t>(node)];
}

void SimulatedNetwork::send(SendOperation& operation, int to, std::size_t bytes) {
  if (failed_) throw JobFailed(reason_);
  const int from = operation.rank;
  if (unused_.empty()) unused_.push_back(messages_.emplace_back(new Message).get());
  Message& message = *unused_.back();
  unused_.pop_back();
  message = {.network = this,
             .from = shape_.one_for_all ? shape_.ranks - to : from,
             .to = shape_.one_for_all ? 0 : to,
             .tag = operation.tag,
             .bytes = bytes,
             .send = &operation,
             .number = operations_++};
  message.out = &nic(from, to);
  message.in = shape_.one_for_all ? message.out : &nic(to, from);
  operation.message = &message;

  const LinkSpeed &out = message.out->speed, &in = message.in->speed;
  const auto latency = from_seconds(std::max(out.latency_s, in.latency_s));
  const auto begin = std::max(Clock::now(), message.out->out_free);
  message.out->out_free = begin + message.out->passing_time(bytes);
  const std::size_t frame = std::min(bytes, kFrameBytes);
  message.arrival = begin + message.out->passing_time(frame) + latency;
  message.all_there = message.out->out_free + latency + message.in->passing_time(frame);
  if (notes_use_ && message.out->noted && bytes > 0)
    use_.push_back({true, begin, message.out->out_free});

  message.leaves = message.out->out_free;
  message.out->out.push_back(&message);
  if (message.out->out.size() == 1) begin_to_send(message);

  auto& queues = ranks_[static_cast<std::size_t>(message.to)]->of(message.tag);
  if (ReceiveOperation* receive = queues.take_receive(message.from))
    match(message, *receive);
  else
    queues.messages[message.from].push_back(&message);
}

// The content is there at once. Only the time is missing.
void SimulatedNetwork::match(Message& message, ReceiveOperation& receive) {
  require(shape_.one_for_all || message.bytes <= receive.bytes,
          "rank {} sent {} bytes to rank {}, which expects {}", message.from, message.bytes,
          message.to, receive.bytes);
  // If one rank stands for all: their shares differ by up to a block. A message is then as long as
  // its receiver expects.
  receive.bytes = std::min(message.bytes, receive.bytes);
  receive.source = message.from;
  receive.message = &message;
  message.receive = &receive;
  message.matched = true;
  if (SendOperation* send = message.send) {
    send->matched = true;
    if (receive.in_place) {
      receive.data = send->memory;
      receive.owner = send->owner;
      receive.lender = send;
      send->borrower = &receive;
    } else if (!is_phantom(receive.memory) && receive.bytes > 0) {
      std::memcpy(receive.memory, send->memory, receive.bytes);
    }
    if (send->awaited && send->done()) wake(send->rank);
  }
  if (message.complete) complete(message);
}

// Its NIC is free for it.
void SimulatedNetwork::begin_to_send(Message& message) {
  VirtualTime& time = *VirtualTime::here();
  time.schedule(
      message.leaves,
      [](void* m) { static_cast<Message*>(m)->network->leave(*static_cast<Message*>(m)); },
      &message);
  time.schedule(
      message.arrival,
      [](void* m) { static_cast<Message*>(m)->network->arrive(*static_cast<Message*>(m)); },
      &message);
}

void SimulatedNetwork::leave(Message& message) {
  auto& waiting = message.out->out;
  waiting.pop_front();
  if (!waiting.empty()) begin_to_send(*waiting.front());
  message.left = true;
  if (SendOperation* send = message.send) {
    send->left = true;
    if (send->awaited && send->done()) wake(send->rank);
  }
  release(message);
}

// The NIC receives messages in the order of arrival.
void SimulatedNetwork::arrive(Message& message) {
  Nic& nic = *message.in;
  const auto begin = std::max(nic.in_free, message.arrival);
  nic.in_free = begin + nic.passing_time(message.bytes);
  if (notes_use_ && nic.noted && message.bytes > 0) use_.push_back({false, begin, nic.in_free});
  message.completes = std::max(nic.in_free, message.all_there);
  // A message of a slow sender may be complete after a later one.
  if (!nic.in.empty() && nic.in.back()->completes > message.completes) return expect(message);
  nic.in.push_back(&message);
  if (nic.in.size() == 1) expect(message);
}

void SimulatedNetwork::expect(Message& message) {
  VirtualTime::here()->schedule(
      message.completes,
      [](void* m) { static_cast<Message*>(m)->network->all_in(*static_cast<Message*>(m)); },
      &message);
}

void SimulatedNetwork::all_in(Message& message) {
  auto& waiting = message.in->in;
  if (!waiting.empty() && waiting.front() == &message) {
    waiting.pop_front();
    if (!waiting.empty()) expect(*waiting.front());
  }
  complete(message);
}

void SimulatedNetwork::complete(Message& message) {
  message.complete = true;
  if (ReceiveOperation* receive = message.receive) {
    receive->is_done = true;
    receive->message = nullptr;
    message.receive = nullptr;
    if (receive->awaited) wake(receive->rank);
  }
  release(message);
}

void SimulatedNetwork::release(Message& message) {
  if (!message.left || !message.complete || !message.matched) return;
  if (message.send) message.send->message = nullptr;
  unused_.push_back(&message);
}

}  // namespace tandem
