#include "dist/transport/threads.h"

#include <algorithm>
#include <cstring>

#include "tensor/error.h"

namespace tandem {

struct ThreadsNetwork::ThreadsOperation final : Operation {
  ThreadsOperation(Kind k, int with, Tag what, std::byte* at, std::size_t size, ThreadsNetwork& in,
                   int begun_by)
      : Operation(k, with, what, size), memory(at), network(in), rank(begun_by) {}
  ~ThreadsOperation() override {
    // Both halves meet under the lock of the receiver's mailbox: here it is in the list or done.
    if (!is_done.load(std::memory_order_acquire))
      network.mailboxes_[receiver()]->change([this](Mailbox& mailbox) {
        (kind == Kind::send ? mailbox.sends : mailbox.receives).remove(this);
      });
  }
  std::size_t receiver() const {
    return static_cast<std::size_t>(kind == Kind::send ? peer : rank);
  }

  std::byte* memory;
  ThreadsNetwork& network;
  int rank;  // whose operation this is
  std::atomic<bool> is_done = false;
};

class ThreadsTransport : public Transport {
 public:
  ThreadsTransport(ThreadsNetwork& network, int rank) : network_(network), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return network_.size(); }
  int node(int) const override { return 0; }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes) override {
    // A sender's memory is only read.
    auto* memory = const_cast<std::byte*>(bytes.data());
    return begin(Operation::Kind::send, to, tag, memory, bytes.size());
  }

  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return begin(Operation::Kind::receive, from, tag, bytes.data(), bytes.size());
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    const bool ended = own_mailbox().wait_until(time, [&](const auto&) {
      return network_.failed_ || std::any_of(requests.begin(), requests.end(),
                                             [&](const Request* r) { return done(*r); });
    });
    if (network_.failed_)
      network_.reason_.change([](const std::string& reason) { throw JobFailed(reason); });
    return ended;
  }

  bool done(const Request& request) const override {
    return !request || static_cast<const ThreadsNetwork::ThreadsOperation&>(*request).is_done.load(
                           std::memory_order_acquire);
  }

  void fail(const std::string& reason) override { network_.fail(reason); }

 private:
  using ThreadsOperation = ThreadsNetwork::ThreadsOperation;

  Monitor<ThreadsNetwork::Mailbox>& own_mailbox() {
    return *network_.mailboxes_[static_cast<std::size_t>(rank_)];
  }

  Request begin(Operation::Kind kind, int peer, Tag tag, std::byte* memory, std::size_t bytes) {
    require(peer < size() && peer != rank_ && (peer >= 0 || kind == Operation::Kind::receive),
            "rank {} addressed rank {} of {}", rank_, peer, size());
    auto own = std::make_unique<ThreadsOperation>(kind, peer, tag, memory, bytes, network_, rank_);
    // Whose operation met this one, if there was one waiting.
    const int other = network_.mailboxes_[own->receiver()]->change([&](auto& mailbox) {
      const bool sending = kind == Operation::Kind::send;
      auto& waiting = sending ? mailbox.receives : mailbox.sends;
      const auto match = std::find_if(waiting.begin(), waiting.end(), [&](ThreadsOperation* o) {
        return sending ? meet(*own, *o) : meet(*o, *own);
      });
      if (match == waiting.end()) {
        (sending ? mailbox.sends : mailbox.receives).push_back(own.get());
        return rank_;
      }
      ThreadsOperation& found = **match;
      const int found_rank = found.rank;
      sending ? deliver(*own, found) : deliver(found, *own);
      waiting.erase(match);
      own->is_done.store(true, std::memory_order_release);
      found.is_done.store(true, std::memory_order_release);  // from here on its owner may end it
      return found_rank;
    });
    if (other != rank_) wake(other);
    return own;
  }

  static bool meet(const ThreadsOperation& send, const ThreadsOperation& receive) {
    return send.tag == receive.tag && (receive.peer == kAnyRank || receive.peer == send.rank);
  }

  static void deliver(const ThreadsOperation& send, ThreadsOperation& receive) {
    require(send.bytes <= receive.bytes, "rank {} sent {} bytes to rank {}, which expects {}",
            send.rank, send.bytes, receive.rank, receive.bytes);
    if (send.bytes > 0) std::memcpy(receive.memory, send.memory, send.bytes);
    receive.bytes = send.bytes;
    receive.source = send.rank;
  }

  void wake(int rank) {
    network_.mailboxes_[static_cast<std::size_t>(rank)]->change([](auto&) {});
  }

  ThreadsNetwork& network_;
  int rank_;
};

ThreadsNetwork::ThreadsNetwork(int size) {
  for (int rank = 0; rank < size; ++rank)
    mailboxes_.push_back(std::make_unique<Monitor<Mailbox>>());
}
ThreadsNetwork::~ThreadsNetwork() = default;

std::unique_ptr<Transport> ThreadsNetwork::transport(int rank) {
  return std::make_unique<ThreadsTransport>(*this, rank);
}

void ThreadsNetwork::fail(const std::string& reason) {
  reason_.change([&](std::string& first) {
    if (!failed_) first = reason;
    failed_ = true;
  });
  for (auto& mailbox : mailboxes_) mailbox->change([](auto&) {});
}

}  // namespace tandem
