#include "dist/transport/link.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "dist/timing/clock_offset.h"

namespace tandem {
namespace {

// Goes before the bytes of a message: when its first frame reaches the receiver's card, by the
// clock of rank 0.
using Stamp = Clock::rep;
constexpr std::size_t kStampBytes = sizeof(Stamp);

// The stamp and the bytes. Its memory is used again and never cleared.
struct Packet {
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0, bytes = 0;

  void resize(std::size_t size) {
    if (size > capacity) {
      memory = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity = size;
    }
    bytes = size;
  }
  std::span<std::byte> all() const { return {memory.get(), bytes}; }
  std::byte* stamp() const { return memory.get(); }
  std::byte* payload() const { return memory.get() + kStampBytes; }
};

class Link;

struct LinkOperation final : Operation {
  LinkOperation(Kind k, int with, Tag what, std::size_t size, Packet p, Link& of)
      : Operation(k, with, what, size), packet(std::move(p)), link(of) {}
  ~LinkOperation() override;

  // A send is in transit until it has left the card. A receive is expected until the transport has
  // it, in transit until its first frame is at the card, then the card takes it in.
  enum class State { expected, in_transit, taken_in, done };
  State state = State::in_transit;
  Clock::time_point next{};  // when the state changes, unless it is `expected`

  Packet packet;
  Request inner;
  std::byte* memory = nullptr;  // where a receive delivers
  Link& link;
};

class Link : public Transport {
 public:
  Link(std::unique_ptr<Transport> inner, const LinkSpeed& speed)
      : inner_(std::move(inner)), speed_(speed), to_rank_0_(clock_offset(*inner_)) {
    set_stall_timeout(inner_->stall_timeout());
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int node(int rank) const override { return inner_->node(rank); }
  void fail(const std::string& reason) override { inner_->fail(reason); }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes) override {
    const auto begin = std::max(Clock::now(), out_free_);
    out_free_ = begin + passing_time(bytes.size());
    const auto arrival =
        begin + passing_time(std::min(bytes.size(), kFrameBytes)) + from_seconds(speed_.latency_s);

    auto own = begin_operation(Operation::Kind::send, to, tag, bytes.size());
    const Stamp stamp = (arrival + to_rank_0_).time_since_epoch().count();
    std::memcpy(own->packet.stamp(), &stamp, kStampBytes);
    if (!bytes.empty()) std::memcpy(own->packet.payload(), bytes.data(), bytes.size());
    own->next = out_free_;
    own->inner = inner_->send(to, tag, own->packet.all());
    return own;
  }

  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    auto own = begin_operation(Operation::Kind::receive, from, tag, bytes.size());
    own->state = LinkOperation::State::expected;
    own->memory = bytes.data();
    own->data = bytes.data();
    own->inner = inner_->receive(from, tag, own->packet.all());
    return own;
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    for (;;) {
      const auto now = Clock::now();
      advance(now);
      if (std::any_of(requests.begin(), requests.end(), [&](Request* r) { return done(*r); }))
        return true;
      if (now >= time) return false;

      // Until the next thing happens by the clock, or the transport has got something done that
      // the cards do not wait for.
      auto wake = time;
      below_.clear();
      for (LinkOperation* o : operations_) {
        if (o->state == LinkOperation::State::expected || o->next <= now)
          below_.push_back(&o->inner);
        else
          wake = std::min(wake, o->next);
      }
      inner_->wait_any_until(below_, wake);
    }
  }

  bool done(const Request& request) const override {
    return !request ||
           static_cast<const LinkOperation&>(*request).state == LinkOperation::State::done;
  }

  void forget(LinkOperation& operation) {
    std::erase(operations_, &operation);
    operation.inner.reset();
    if (packets_.size() < kSparePackets) packets_.push_back(std::move(operation.packet));
  }

 private:
  static constexpr std::size_t kSparePackets = 64;

  Clock::duration passing_time(std::size_t bytes) const {
    return from_seconds(static_cast<double>(bytes) / speed_.bytes_per_s);
  }

  std::unique_ptr<LinkOperation> begin_operation(Operation::Kind kind, int peer, Tag tag,
                                                 std::size_t bytes) {
    Packet packet;
    if (!packets_.empty()) {
      packet = std::move(packets_.back());
      packets_.pop_back();
    }
    packet.resize(kStampBytes + bytes);
    auto own = std::make_unique<LinkOperation>(kind, peer, tag, bytes, std::move(packet), *this);
    operations_.push_back(own.get());
    return own;
  }

  // Brings all operations to where they are at the time `now`.
  void advance(Clock::time_point now) {
    using State = LinkOperation::State;
    arrived_.clear();
    for (LinkOperation* o : operations_) {
      if (o->state == State::expected && inner_->done(o->inner)) {
        Stamp stamp = 0;
        std::memcpy(&stamp, o->packet.stamp(), kStampBytes);
        o->bytes = o->inner->bytes - kStampBytes;
        o->source = o->inner->source;
        o->next = Clock::time_point(Clock::duration(stamp)) - to_rank_0_;
        o->state = State::in_transit;
      }
      if (o->kind == Operation::Kind::receive && o->state == State::in_transit && o->next <= now)
        arrived_.push_back(o);
    }
    // The card takes in what has arrived, in that order.
    std::stable_sort(arrived_.begin(), arrived_.end(),
                     [](const auto* a, const auto* b) { return a->next < b->next; });
    for (LinkOperation* o : arrived_) {
      in_free_ = std::max(in_free_, o->next) + passing_time(o->bytes);
      o->next = in_free_;
      o->state = State::taken_in;
    }
    for (LinkOperation* o : operations_) {
      if (o->state == State::done || o->state == State::expected || o->next > now) continue;
      if (o->kind == Operation::Kind::send) {
        if (inner_->done(o->inner)) o->state = State::done;
      } else {
        if (o->bytes > 0) std::memcpy(o->memory, o->packet.payload(), o->bytes);
        o->state = State::done;
      }
    }
    std::erase_if(operations_, [](const LinkOperation* o) { return o->state == State::done; });
  }

  std::unique_ptr<Transport> inner_;
  LinkSpeed speed_;
  Clock::duration to_rank_0_;                 // this rank's clock + to_rank_0_ = rank 0's clock
  Clock::time_point out_free_{}, in_free_{};  // when each direction of the card is free again
  std::vector<LinkOperation*> operations_;    // that are not done
  std::vector<Packet> packets_;               // to use again

  std::vector<Request*> below_;          // scratch of wait_any_until
  std::vector<LinkOperation*> arrived_;  // scratch of advance
};

LinkOperation::~LinkOperation() { link.forget(*this); }

}  // namespace

std::unique_ptr<Transport> slow_down(std::unique_ptr<Transport> transport, const LinkSpeed& speed) {
  if (!speed.limited()) return transport;
  return std::make_unique<Link>(std::move(transport), speed);
}

}  // namespace tandem
