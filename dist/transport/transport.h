// Moves bytes between ranks. There are two implementations, threads.h and mpi_transport.h, and a
// decorator, link.h, that slows either of them down to the speed of a network.
//
// Sends and receives do not block: they return a Request to wait for. Messages from one rank to
// another with the same tag arrive in the order of sending. A receive takes the oldest message that
// matches. One thread, the rank's communication thread, makes all calls but fail() and wake().
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tensor/storage.h"

namespace tandem {

class ThreadPool;

inline constexpr int kAnyRank = -1;
std::string name_of_rank(int rank);  // for messages: "rank 3"

// Thrown by waits after the job has failed elsewhere: on another rank or another thread.
class JobFailed : public SystemError {
 public:
  explicit JobFailed(const std::string& reason) : SystemError("{}", reason) {}
};

// Sends end roughly in the order in which they begin. With many in flight, looking at all of them
// after each message would take longer than the messages.
inline constexpr std::ptrdiff_t kSendsWatched = 64;

// What a message is about.
enum class Tag : int { control, calibration, ring, push, pull };
inline constexpr int kTags = 5;
// The same tag on a channel. Concurrent operations use different channels, so that they do not take
// each other's messages. A plain tag is on channel 0.
inline constexpr int kChannels = 64;
inline Tag on_channel(Tag tag, int channel) {
  require(channel >= 0 && channel < kChannels, "channel {} of {}", channel, kChannels);
  return static_cast<Tag>(static_cast<int>(tag) + channel * kTags);
}
// The tag of announcements of messages with this tag and channel (link.h).
inline Tag announcement_of(Tag tag) {
  return static_cast<Tag>(static_cast<int>(tag) + kTags * kChannels);
}

// One send or receive in progress. Its bytes must stay valid until it is done.
struct Operation {
  enum class Kind { send, receive };
  virtual ~Operation() = default;

  Kind kind;
  int peer;  // a receive may have kAnyRank
  Tag tag;
  std::size_t bytes;  // size of the message; before a receive is done, the size of its memory
  int source = -1;    // the sender, once a receive is done
  // Where the message is, once a receive is done.
  const std::byte* data = nullptr;
  Storage owner;  // its memory, if the receiver may keep it; see send()

  std::span<const std::byte> message() const { return {data, bytes}; }

 protected:
  Operation(Kind k, int with, Tag what, std::size_t size)
      : kind(k), peer(with), tag(what), bytes(size) {}
};
// Empty, or an operation in progress. Destroying an operation that is not done cancels it, and the
// message is not delivered. That happens only when a job fails.
using Request = std::unique_ptr<Operation>;

// The state that a rank reports to others (stall.h). Aligned to its size, so that it can be stored
// atomically.
struct alignas(8) Sign {
  enum class State { silent, busy, waits };  // silent: it reports nothing
  State state = State::silent;
  int waits_for = kAnyRank;  // if the state is `waits`
};

// How long to wait: until the stall timeout, or longer while other ranks work.
enum class Patience { until_timeout, while_others_work };

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Ranks with the same number share a machine and its clock.
  virtual int machine(int rank) const = 0;
  // Ranks with the same number share a node. It is a machine, or so many consecutive ranks that
  // stand for one; the last node may have fewer.
  int node(int rank) const { return ranks_per_node_ > 0 ? rank / ranks_per_node_ : machine(rank); }
  void set_ranks_per_node(int ranks) { ranks_per_node_ = ranks; }
  int ranks_per_node() const { return ranks_per_node_; }  // 0: nodes are machines
  // How many bytes a sender should have in flight so that the network is never idle; the same on
  // all ranks. The default suffices for 100 Gbit/s and a round trip of half a millisecond.
  virtual std::size_t bytes_in_flight() const { return 8 << 20; }
  // How many bytes the network carries in one latency; 0 if it is not known.
  virtual std::size_t latency_bytes() const { return 0; }
  // Whether all ranks are on one machine, without an emulated link between them.
  virtual bool on_one_node() const { return false; }
  // Whether this rank stands for all of them: they do the same at the same time
  // (simulate/network.h).
  virtual bool stands_for_all() const { return false; }

  // If a message is sent with its `owner`, the memory that begins with it, a receiver in the same
  // process may keep that memory instead of copying the message. The sender must not write to it
  // afterwards.
  Request send(int to, Tag tag, std::span<const std::byte> bytes, const Storage& owner = {}) {
    if (counts_ && static_cast<int>(tag) < kTags * kChannels)
      bytes_sent_[static_cast<std::size_t>(tag) % kTags] += static_cast<std::int64_t>(bytes.size());
    return begin_send(to, tag, bytes, owner);
  }
  virtual Request receive(int from, Tag tag, std::span<std::byte> bytes) = 0;
  // Like receive(), but the message may stay in the sender's memory until the request is destroyed.
  // The send is done only then. Wait with await(), which keeps the request.
  virtual Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) {
    return receive(from, tag, bytes);
  }
  // Whether it does stay there.
  virtual bool reads_in_place() const { return false; }

  // Waits until one of the requests is done, until `time` or for wake(). Returns whether one is
  // done. Empty requests count as done.
  virtual bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) = 0;
  virtual bool done(const Request& request) const = 0;
  bool any_done(std::span<Request* const> requests) const {
    return std::ranges::any_of(requests, [&](const Request* r) { return done(*r); });
  }
  // Ends a wait_any_until() of this rank early: the current one or, if there is none, the next.
  // Any thread may call it.
  virtual void wake() = 0;

  // Fails the job with this reason: all waits of this rank, and of other ranks if this transport
  // can reach them, end with JobFailed. Any thread may call it.
  virtual void fail(const std::string& reason) = 0;

  // Waits until the request is done and empties it. Returns the rank at the other end. If the wait
  // takes too long, one rank of the job throws Stalled.
  int wait(Request& request, Patience patience = Patience::until_timeout);
  // Like wait(), but keeps the request.
  void await(Request& request, Patience patience = Patience::until_timeout) {
    Request* const one[] = {&request};
    if (request) await_any(one, patience);
  }
  // Like await(), but returns when any of the requests is done.
  void await_any(std::span<Request* const> requests, Patience patience);

  void send_and_wait(int to, Tag tag, std::span<const std::byte> bytes);
  int receive_and_wait(int from, Tag tag, std::span<std::byte> bytes);  // returns the sender

  // Threads that help to copy and add messages, because a single core cannot use the full memory
  // bandwidth. Null by default. They must outlive the transport.
  void set_helpers(ThreadPool* helpers) { helpers_ = helpers; }
  ThreadPool* helpers() const { return helpers_; }

  void set_stall_timeout(double seconds);
  double stall_timeout() const { return stall_timeout_s_; }

  // Heartbeats, for stall.h. A communication thread that is idle or in a long wait reports its
  // rank's state once per slice.
  Clock::duration slice() const { return slice_; }
  virtual void show(const Sign& sign) = 0;
  // Reports the state to all other ranks and asks for theirs. `in_earnest` means that this rank is
  // about to end the job.
  virtual void ask(const Sign& sign, bool in_earnest) = 0;
  // The states that ranks have reported since then; silent for ranks without a report.
  virtual std::vector<Sign> signs(Clock::time_point since) const = 0;
  // How long answers may take.
  virtual Clock::duration answer_time() const = 0;
  // Whether another rank will end the job, so that this one should not.
  virtual bool left_to_another() const = 0;

  // Of all channels, while they are counted; they are at first. Returns whether they were.
  bool count_bytes(bool counts) { return std::exchange(counts_, counts); }
  std::int64_t bytes_sent(Tag tag) const { return bytes_sent_[static_cast<std::size_t>(tag)]; }
  // Gradients and weights.
  std::int64_t bytes_sent() const {
    return bytes_sent(Tag::ring) + bytes_sent(Tag::push) + bytes_sent(Tag::pull);
  }

 private:
  virtual Request begin_send(int to, Tag tag, std::span<const std::byte> bytes,
                             const Storage& owner) = 0;

  bool counts_ = true;
  std::array<std::int64_t, kTags> bytes_sent_{};
  int ranks_per_node_ = 0;
  double stall_timeout_s_ = 60;
  Clock::duration slice_ = std::chrono::milliseconds(100);
  ThreadPool* helpers_ = nullptr;
};

}  // namespace tandem
