#include "simulate/folded.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <utility>

#include "base/monitor.h"
#include "base/phantom_memory.h"
#include "dist/transport/threads.h"

namespace tandem {
namespace {

struct FoldedOperation;

// Sends and receives of one distance and tag that have no counterpart yet, oldest first.
struct Meeting {
  std::list<FoldedOperation*> sends, receives;
};

struct FoldedOperation final : Operation {
  FoldedOperation(Kind k, int with, Tag what, std::byte* at, std::size_t size, Meeting& place)
      : Operation(k, with, what, size), memory(at), meeting(place) {
    if (k == Kind::receive) data = at;
  }
  ~FoldedOperation() override {
    if (!is_done) (kind == Kind::send ? meeting.sends : meeting.receives).remove(this);
    if (lender) lender->is_done = true;
  }

  std::byte* memory;
  Meeting& meeting;
  bool is_done = false;
  bool in_place = false;
  FoldedOperation* lender = nullptr;  // the send whose memory this receive reads
};

class FoldedTransport : public Transport {
 public:
  explicit FoldedTransport(int ranks) : ranks_(ranks) {}

  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  int node(int) const override { return 0; }
  std::size_t bytes_in_flight() const override { return ThreadsNetwork::kBytesPerCore; }
  bool stands_for_all() const override { return true; }
  bool reads_in_place() const override { return true; }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes,
                     const Storage& owner) override {
    auto* memory = const_cast<std::byte*>(bytes.data());  // is never written
    auto own = begin(Operation::Kind::send, to, tag, {memory, bytes.size()});
    own->owner = owner;
    return meet(std::move(own));
  }
  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return meet(begin(Operation::Kind::receive, from, tag, bytes));
  }
  Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) override {
    auto own = begin(Operation::Kind::receive, from, tag, bytes);
    own->in_place = true;
    return meet(std::move(own));
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    if (any_done(requests)) return true;
    calls_.wait_until(time,
                      [](const Calls& calls) { return calls.woken || !calls.failure.empty(); });
    const std::string failure = calls_.change([](Calls& calls) {
      calls.woken = false;
      return calls.failure;
    });
    if (!failure.empty()) throw JobFailed(failure);
    return any_done(requests);
  }
  bool done(const Request& request) const override {
    return !request || static_cast<const FoldedOperation&>(*request).is_done;
  }
  void wake() override {
    calls_.change([](Calls& calls) { calls.woken = true; });
  }
  void fail(const std::string& reason) override {
    calls_.change([&](Calls& calls) { calls.failure = reason; });
  }

  void show(const Sign&) override {}
  void ask(const Sign&, bool) override {}
  std::vector<Sign> signs(Clock::time_point) const override {
    return std::vector<Sign>(static_cast<std::size_t>(ranks_), {Sign::State::busy});
  }
  Clock::duration answer_time() const override { return slice(); }
  bool left_to_another() const override { return false; }

 private:
  struct Calls {
    bool woken = false;
    std::string failure;
  };

  std::unique_ptr<FoldedOperation> begin(Operation::Kind kind, int peer, Tag tag,
                                         std::span<std::byte> bytes) {
    require(peer > 0 && peer < ranks_, "a rank that stands for all addressed rank {} of {}", peer,
            ranks_);
    const int distance = kind == Operation::Kind::send ? peer : ranks_ - peer;
    Meeting& meeting = meetings_[{distance, tag}];
    return std::make_unique<FoldedOperation>(kind, peer, tag, bytes.data(), bytes.size(), meeting);
  }

  static Request meet(std::unique_ptr<FoldedOperation> own) {
    const bool sends = own->kind == Operation::Kind::send;
    auto& others = sends ? own->meeting.receives : own->meeting.sends;
    if (others.empty()) {
      (sends ? own->meeting.sends : own->meeting.receives).push_back(own.get());
      return own;
    }
    FoldedOperation& other = *others.front();
    others.pop_front();
    sends ? deliver(*own, other) : deliver(other, *own);
    return own;
  }

  // The shares of ranks differ by up to a block. A message is then as long as its receiver expects.
  static void deliver(FoldedOperation& send, FoldedOperation& receive) {
    receive.bytes = std::min(send.bytes, receive.bytes);
    receive.source = receive.peer;
    receive.is_done = true;
    if (receive.in_place) {
      receive.data = send.memory;
      receive.owner = send.owner;
      receive.lender = &send;
      return;
    }
    if (!is_phantom(receive.memory) && receive.bytes > 0)
      std::memcpy(receive.memory, send.memory, receive.bytes);
    send.is_done = true;
  }

  int ranks_;
  std::map<std::pair<int, Tag>, Meeting> meetings_;
  Monitor<Calls> calls_;
};

}  // namespace

std::unique_ptr<Transport> folded_transport(int ranks) {
  return std::make_unique<FoldedTransport>(ranks);
}

}  // namespace tandem
