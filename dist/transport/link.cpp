#include "dist/transport/link.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "dist/timing/clock_offset.h"

namespace tandem {
namespace {

struct Announcement {
  Clock::rep arrival;  // when the first frame reaches the receiver's NIC, by rank 0's clock
  std::size_t bytes;
  std::uint64_t number;  // at the receiver's NIC, if the sender has told it; else 0
};

constexpr std::size_t kAtWork = 1 << 20;  // bytes added while the NIC sends the next ones

class Link;

struct LinkOperation final : Operation {
  LinkOperation(Kind k, int with, Tag what, std::size_t size, Link& of)
      : Operation(k, with, what, size), link(of) {}
  ~LinkOperation() override;

  // A send is `in_transit` until it has left the NIC. A receive is `expected` until it is
  // announced, `in_transit` until its first frame reaches the NIC, and `taken_in` while the NIC
  // receives it.
  enum class State { expected, in_transit, taken_in, done };
  State state = State::in_transit;
  Clock::time_point next{};  // when the state changes; not known while `expected`

  Announcement announcement{};
  Request announced, inner;
  std::span<std::byte> memory;  // where a receive stores its message
  Link& link;
};

class Link : public Transport {
 public:
  Link(std::unique_ptr<Transport> inner, const LinkSpeed& speed, Nics* nics)
      : inner_(std::move(inner)),
        speed_(speed),
        to_rank_0_(clock_offset(*inner_)),
        own_nic_(speed),
        nics_(nics),
        nic_(nics ? nic_of(inner_->rank()) : own_nic_) {
    set_stall_timeout(inner_->stall_timeout());
    set_ranks_per_node(inner_->ranks_per_node());
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int machine(int rank) const override { return inner_->machine(rank); }
  std::size_t bytes_in_flight() const override {
    return tandem::bytes_in_flight(speed_, inner_->bytes_in_flight());
  }
  std::size_t latency_bytes() const override { return tandem::latency_bytes(speed_); }
  bool stands_for_all() const override { return inner_->stands_for_all(); }
  void fail(const std::string& reason) override { inner_->fail(reason); }
  void wake() override {
    woken_ = true;
    inner_->wake();
  }

  // Heartbeats are not slowed down.
  void show(const Sign& sign) override { inner_->show(sign); }
  void ask(const Sign& sign, bool in_earnest) override { inner_->ask(sign, in_earnest); }
  std::vector<Sign> signs(Clock::time_point since) const override { return inner_->signs(since); }
  Clock::duration answer_time() const override { return inner_->answer_time(); }
  bool left_to_another() const override { return inner_->left_to_another(); }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes,
                     const Storage& owner) override {
    auto own = std::make_unique<LinkOperation>(Operation::Kind::send, to, tag, bytes.size(), *this);
    own->announcement = {0, bytes.size(), 0};
    if (!is_near(to)) {
      const auto [left, arrival] = nic_.send(bytes.size());
      own->next = left;
      own->announcement.arrival = (arrival + to_rank_0_).time_since_epoch().count();
      if (nics_) own->announcement.number = nic_of(to).expect(arrival, bytes.size());
    }
    own->announced =
        inner_->send(to, announcement_of(tag), std::as_bytes(std::span(&own->announcement, 1)));
    own->inner = inner_->send(to, tag, bytes, owner);
    return own;
  }

  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    auto own = begin_receive(from, tag, bytes);
    if (from != kAnyRank) own->inner = inner_->receive(from, tag, bytes);
    return own;
  }

  Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) override {
    auto own = begin_receive(from, tag, bytes);
    if (from != kAnyRank) own->inner = inner_->receive_in_place(from, tag, bytes);
    return own;
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    for (;;) {
      const auto now = Clock::now();
      take_in(now);
      if (std::any_of(requests.begin(), requests.end(), [&](Request* r) { return done(*r, now); }))
        return true;
      if (now >= time || woken_.exchange(false)) return false;

      // Sleep until the next state change by the clock, or until the transport completes an
      // operation whose time has come.
      auto wake = time;
      below_.clear();
      for (LinkOperation* o : receives_) look_out_for(*o, now, wake);
      for (Request* r : requests)
        if (auto& o = static_cast<LinkOperation&>(**r); o.kind == Operation::Kind::send)
          look_out_for(o, now, wake);
      inner_->wait_any_until(below_, wake);
    }
  }

  bool done(const Request& request) const override { return done(request, Clock::now()); }

  void forget(LinkOperation& operation) { std::erase(receives_, &operation); }

 private:
  using State = LinkOperation::State;

  Nic& nic_of(int rank) const { return (*nics_)[static_cast<std::size_t>(inner_->node(rank))]; }
  // Whether a message to or from this rank stays within the node.
  bool is_near(int rank) const { return nics_ && inner_->node(rank) == inner_->node(this->rank()); }

  std::unique_ptr<LinkOperation> begin_receive(int from, Tag tag, std::span<std::byte> bytes) {
    auto own =
        std::make_unique<LinkOperation>(Operation::Kind::receive, from, tag, bytes.size(), *this);
    own->state = State::expected;
    own->memory = bytes;
    own->announced = inner_->receive(from, announcement_of(tag),
                                     std::as_writable_bytes(std::span(&own->announcement, 1)));
    receives_.push_back(own.get());
    return own;
  }

  bool done(const Request& request, Clock::time_point now) const {
    if (!request) return true;
    const auto& o = static_cast<const LinkOperation&>(*request);
    if (o.kind == Operation::Kind::receive) return o.state == State::done;
    return o.next <= now && inner_->done(o.announced) && inner_->done(o.inner);
  }

  void look_out_for(LinkOperation& o, Clock::time_point now, Clock::time_point& wake) {
    if (o.state == State::expected || !inner_->done(o.announced))
      below_.push_back(&o.announced);
    else if (o.next <= now)
      below_.push_back(&o.inner);
    else
      wake = std::min(wake, o.next);
  }

  // Updates the states of all receives to the time `now`.
  void take_in(Clock::time_point now) {
    for (LinkOperation* o : receives_) {
      if (o->state == State::expected && inner_->done(o->announced)) {
        o->bytes = o->announcement.bytes;
        o->source = o->announced->source;
        if (!o->inner) o->inner = inner_->receive(o->source, o->tag, o->memory);
        if (is_near(o->source)) {
          o->next = now;
          o->state = State::taken_in;
          continue;
        }
        o->next = Clock::time_point(Clock::duration(o->announcement.arrival)) - to_rank_0_;
        o->state = State::in_transit;
        if (!nics_) o->announcement.number = nic_.expect(o->next, o->bytes);
      }
    }
    for (LinkOperation* o : receives_) {
      if (o->state != State::in_transit || o->next > now) continue;
      o->next = nic_.received(o->announcement.number, now);
      o->state = State::taken_in;
    }
    for (LinkOperation* o : receives_) {
      if (o->state != State::taken_in || o->next > now || !inner_->done(o->inner)) continue;
      o->data = o->inner->data;
      o->owner = o->inner->owner;
      o->state = State::done;
    }
    std::erase_if(receives_, [](const LinkOperation* o) { return o->state == State::done; });
  }

  std::unique_ptr<Transport> inner_;
  LinkSpeed speed_;
  Clock::duration to_rank_0_;  // this rank's clock + to_rank_0_ = rank 0's clock
  Nic own_nic_;
  Nics* nics_;  // by node; null: every rank has its own
  Nic& nic_;
  std::atomic<bool> woken_ = false;
  std::vector<LinkOperation*> receives_;  // receives that are not done, in the order of the calls

  std::vector<Request*> below_;  // temporary, for wait_any_until()
};

LinkOperation::~LinkOperation() { link.forget(*this); }

}  // namespace

std::size_t bytes_in_flight(const LinkSpeed& speed, std::size_t below) {
  const double on_the_wire = speed.bytes_per_s * speed.latency_s;
  return below + kAtWork + static_cast<std::size_t>(2 * on_the_wire);
}

std::size_t latency_bytes(const LinkSpeed& speed) {
  return static_cast<std::size_t>(speed.bytes_per_s * speed.latency_s) + kFrameBytes;
}

std::unique_ptr<Transport> slow_down(std::unique_ptr<Transport> transport, const LinkSpeed& speed,
                                     Nics* nics) {
  if (!speed.limited()) return transport;
  return std::make_unique<Link>(std::move(transport), speed, nics);
}

}  // namespace tandem
