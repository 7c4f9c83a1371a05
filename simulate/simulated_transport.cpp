// What a rank sends and receives in a simulated network.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "dist/transport/link.h"
#include "dist/transport/threads.h"
#include "simulate/network_parts.h"

namespace tandem {
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
  int machine(int rank) const override { return network_.shape_.node_of(rank); }
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

std::unique_ptr<Transport> SimulatedNetwork::transport(int rank) {
  return std::make_unique<SimulatedTransport>(*this, rank);
}

}  // namespace tandem
