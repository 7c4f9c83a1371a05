#include "dist/transport/threads.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "base/thread_pool.h"

namespace tandem {

struct ThreadsNetwork::ThreadsOperation final : Operation {
  ThreadsOperation(Kind k, int with, Tag what, std::byte* at, std::size_t size, ThreadsNetwork& in,
                   int begun_by)
      : Operation(k, with, what, size), memory(at), network(in), rank(begun_by) {
    if (k == Kind::receive) data = at;
  }
  ~ThreadsOperation() override {
    const auto over = [this](const Mailbox&) { return is_done.load(std::memory_order_acquire); };
    if (!is_done.load(std::memory_order_acquire) && !give_up())
      network.mailboxes_[static_cast<std::size_t>(rank)]->wait(over, [](Mailbox&) {});
    if (!lender) return;
    // The message has been read.
    const int sender = lender->rank;
    lender->is_done.store(true, std::memory_order_release);
    network.mailboxes_[static_cast<std::size_t>(sender)]->change([](Mailbox&) {});
  }
  // Removes this operation from the receiver's mailbox. Returns false if it is no longer there: the
  // other rank is then copying or reading the message, and will finish.
  bool give_up() {
    return network.mailboxes_[receiver()]->change([this](Mailbox& mailbox) {
      return (kind == Kind::send ? mailbox.sends : mailbox.receives).remove(this) > 0;
    });
  }
  std::size_t receiver() const {
    return static_cast<std::size_t>(kind == Kind::send ? peer : rank);
  }

  std::byte* memory;
  ThreadsNetwork& network;
  int rank;                            // that began this operation
  bool in_place = false;               // a receive that reads the message in the sender's memory
  ThreadsOperation* lender = nullptr;  // its send, which ends when this receive is destroyed
  std::atomic<bool> is_done = false;
};

class ThreadsTransport : public Transport {
 public:
  ThreadsTransport(ThreadsNetwork& network, int rank) : network_(network), rank_(rank) {
    ThreadsTransport::show({Sign::State::busy});
  }
  ~ThreadsTransport() override { ThreadsTransport::show({Sign::State::silent}); }

  int rank() const override { return rank_; }
  int size() const override { return network_.size(); }
  int machine(int) const override { return 0; }
  std::size_t bytes_in_flight() const override { return network_.bytes_in_flight_; }
  bool on_one_node() const override { return true; }
  bool reads_in_place() const override { return true; }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes,
                     const Storage& owner) override {
    // The sender's memory is never written.
    auto* memory = const_cast<std::byte*>(bytes.data());
    return begin(Operation::Kind::send, to, tag, memory, bytes.size(), false, owner);
  }

  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return begin(Operation::Kind::receive, from, tag, bytes.data(), bytes.size());
  }

  Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) override {
    return begin(Operation::Kind::receive, from, tag, bytes.data(), bytes.size(), true);
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    const auto over = [&] { return network_.failed_ || woken_ || any_done(requests); };
    look_for_a_moment(over, time);
    own_mailbox().wait_until(time, [&](const auto&) { return over(); });
    if (network_.failed_) network_.throw_failure();
    if (any_done(requests)) return true;
    woken_ = false;
    return false;
  }

  bool done(const Request& request) const override {
    return !request || static_cast<const ThreadsNetwork::ThreadsOperation&>(*request).is_done.load(
                           std::memory_order_acquire);
  }

  void fail(const std::string& reason) override { network_.fail(reason); }
  void wake() override {
    woken_ = true;
    wake(rank_);
  }

  void show(const Sign& sign) override {
    network_.signs_[static_cast<std::size_t>(rank_)].store(sign);
  }
  void ask(const Sign&, bool) override {}  // all states are in shared memory
  std::vector<Sign> signs(Clock::time_point) const override {
    return {network_.signs_.begin(), network_.signs_.end()};
  }
  // A rank shows a wait one slice after it begins.
  Clock::duration answer_time() const override { return 2 * slice(); }
  bool left_to_another() const override { return false; }  // only the first failure counts

 private:
  using ThreadsOperation = ThreadsNetwork::ThreadsOperation;

  Monitor<ThreadsNetwork::Mailbox>& own_mailbox() {
    return *network_.mailboxes_[static_cast<std::size_t>(rank_)];
  }

  Request begin(Operation::Kind kind, int peer, Tag tag, std::byte* memory, std::size_t bytes,
                bool in_place = false, const Storage& owner = {}) {
    require(peer < size() && peer != rank_ && (peer >= 0 || kind == Operation::Kind::receive),
            "rank {} addressed rank {} of {}", rank_, peer, size());
    auto own = std::make_unique<ThreadsOperation>(kind, peer, tag, memory, bytes, network_, rank_);
    own->in_place = in_place;
    own->owner = owner;
    const bool sending = kind == Operation::Kind::send;
    // The matching operation, if it was waiting; it is then removed from its list. After a failure,
    // lists have gaps, so a match might belong to another message.
    bool failed = false;
    ThreadsOperation* const found =
        network_.mailboxes_[own->receiver()]->change([&](auto& mailbox) -> ThreadsOperation* {
          failed = network_.failed_;
          if (failed) return nullptr;
          auto& waiting = sending ? mailbox.receives : mailbox.sends;
          const auto match = std::find_if(waiting.begin(), waiting.end(), [&](ThreadsOperation* o) {
            return sending ? meet(*own, *o) : meet(*o, *own);
          });
          if (match == waiting.end()) {
            (sending ? mailbox.sends : mailbox.receives).push_back(own.get());
            return nullptr;
          }
          ThreadsOperation* other = *match;
          waiting.erase(match);
          return other;
        });
    if (failed) {
      finish(*own);
      network_.throw_failure();
    }
    if (!found) return own;
    const int other = found->rank;
    sending ? deliver(*own, *found) : deliver(*found, *own);
    wake(other);
    return own;
  }

  static bool meet(const ThreadsOperation& send, const ThreadsOperation& receive) {
    return send.tag == receive.tag && (receive.peer == kAnyRank || receive.peer == send.rank);
  }

  // Once an operation is done, its owner may destroy it. The copy holds no lock, so that other
  // messages to the same rank need not wait for it.
  void deliver(ThreadsOperation& send, ThreadsOperation& receive) const {
    const auto [from, to] = std::pair(send.rank, receive.rank);
    const auto [sent, expected] = std::pair(send.bytes, receive.bytes);
    if (sent > expected) {  // a bug, but no rank may wait forever
      finish(send);
      finish(receive);
      require(false, "rank {} sent {} bytes to rank {}, which expects {}", from, sent, to,
              expected);
    }
    receive.bytes = send.bytes;
    receive.source = send.rank;
    if (receive.in_place) {
      receive.data = send.memory;
      receive.owner = send.owner;
      receive.lender = &send;
    } else {
      copy(send.memory, receive.memory, send.bytes);
      finish(send);
    }
    finish(receive);
  }
  void copy(const std::byte* from, std::byte* to, std::size_t bytes) const {
    if (is_phantom(to)) return;
    constexpr std::int64_t kPart = 64 << 10;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
    };
    run_ranges(helpers(), static_cast<std::int64_t>(bytes), kPart, part);
  }
  static void finish(ThreadsOperation& operation) {
    operation.is_done.store(true, std::memory_order_release);
  }

  void wake(int rank) {
    network_.mailboxes_[static_cast<std::size_t>(rank)]->change([](auto&) {});
  }

  ThreadsNetwork& network_;
  int rank_;
  std::atomic<bool> woken_ = false;
};

ThreadsNetwork::ThreadsNetwork(int size, std::size_t bytes_in_flight)
    : bytes_in_flight_(bytes_in_flight), signs_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank)
    mailboxes_.push_back(std::make_unique<Monitor<Mailbox>>());
}
ThreadsNetwork::~ThreadsNetwork() = default;

std::unique_ptr<Transport> ThreadsNetwork::transport(int rank) {
  return std::make_unique<ThreadsTransport>(*this, rank);
}

void ThreadsNetwork::throw_failure() {
  reason_.change([](const std::string& reason) { throw JobFailed(reason); });
}

void ThreadsNetwork::fail(const std::string& reason) {
  reason_.change([&](std::string& first) {
    if (!failed_) first = reason;
    failed_ = true;
  });
  for (auto& mailbox : mailboxes_) mailbox->change([](auto&) {});
}

}  // namespace tandem
