// Moves bytes between ranks. Two implementations, threads.h and mpi_transport.h, and a decorator
// that slows either of them down to the speed of a network, link.h.
//
// Sends and receives do not block: they return a Request, to be waited for. Messages from one rank
// to another with the same tag arrive in the order of sending. A receive takes the oldest message
// that matches. All calls but fail() are made by one thread, the rank's communication thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace tandem {

class ThreadPool;

inline constexpr int kAnyRank = -1;
std::string name_of_rank(int rank);  // for messages: "rank 3"

// Thrown by waits once the job has failed: on this rank or on another one, but not here and now.
class JobFailed : public SystemError {
 public:
  explicit JobFailed(const std::string& reason) : SystemError("{}", reason) {}
};

// Who talks about what.
enum class Tag : int { control, calibration, ring, push, pull };
inline constexpr std::size_t kTags = 5;
// What announces a message of that tag (link.h).
inline Tag announcement_of(Tag tag) {
  return static_cast<Tag>(static_cast<std::size_t>(tag) + kTags);
}

// One send or receive on its way. The bytes stay where they are until it is done.
struct Operation {
  enum class Kind { send, receive };
  virtual ~Operation() = default;

  Kind kind;
  int peer;  // a receive may have kAnyRank
  Tag tag;
  std::size_t bytes;  // of the message; of a receive, the most it takes until it is done
  int source = -1;    // of a receive that is done: who sent it
  // Of a receive: where the message is when it is done.
  const std::byte* data = nullptr;

  std::span<const std::byte> message() const { return {data, bytes}; }

 protected:
  Operation(Kind k, int with, Tag what, std::size_t size)
      : kind(k), peer(with), tag(what), bytes(size) {}
};
// Empty, or an operation that was begun. To destroy an operation that is not done gives it up: the
// message is neither delivered nor taken. That happens where a job fails.
using Request = std::unique_ptr<Operation>;

// What a rank shows of itself to those who ask (stall.h).
struct Sign {
  enum class State { silent, busy, waits };  // silent: it shows nothing
  State state = State::silent;
  int waits_for = kAnyRank;  // where it waits
};

// How long to wait: up to the stall timeout, or beyond it as long as others are seen to work.
enum class Patience { until_timeout, while_others_work };

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Ranks with the same number share a machine, and its clock.
  virtual int node(int rank) const = 0;
  // How much a sender should have on its way for the network never to be idle; the same on all
  // ranks. Enough for 100 Gbit/s and half a millisecond from a message to the answer.
  virtual std::size_t bytes_in_flight() const { return 8 << 20; }

  Request send(int to, Tag tag, std::span<const std::byte> bytes) {
    bytes_sent_[static_cast<std::size_t>(tag)] += static_cast<std::int64_t>(bytes.size());
    return begin_send(to, tag, bytes);
  }
  virtual Request receive(int from, Tag tag, std::span<std::byte> bytes) = 0;
  // The same for a message that may stay where the sender has it until the request is destroyed;
  // the sender's is done only then. To be waited for with await().
  virtual Request receive_in_place(int from, Tag tag, std::span<std::byte> bytes) {
    return receive(from, tag, bytes);
  }

  // Waits until one of the requests is done or until the time has come; whether one is. Empty
  // requests count as done.
  virtual bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) = 0;
  virtual bool done(const Request& request) const = 0;

  // The job fails, for this reason: all waits of this rank, and of others as far as this transport
  // can reach them, end with JobFailed. May be called by any thread.
  virtual void fail(const std::string& reason) = 0;

  // Waits until the request is done and empties it. Returns the rank at the other end. Throws
  // Stalled, on one rank of the job, if that takes too long.
  int wait(Request& request, Patience patience = Patience::until_timeout);
  // The same, but the request stays.
  void await(Request& request, Patience patience = Patience::until_timeout) {
    Request* const one[] = {&request};
    if (request) await_any(one, patience);
  }
  // The same until one of them is done.
  void await_any(std::span<Request* const> requests, Patience patience);

  void send_and_wait(int to, Tag tag, std::span<const std::byte> bytes);
  int receive_and_wait(int from, Tag tag, std::span<std::byte> bytes);  // returns the sender

  // Threads that share the work of copying and adding messages, where there are cores to spare: one
  // core moves far less than the machine's memory. None by default. They must outlive the
  // transport.
  void set_helpers(ThreadPool* helpers) { helpers_ = helpers; }
  ThreadPool* helpers() const { return helpers_; }

  void set_stall_timeout(double seconds);
  double stall_timeout() const { return stall_timeout_s_; }

  // Signs of life, for stall.h. A communication thread that waits for long, or has nothing to do,
  // shows every slice what its rank does.
  Clock::duration slice() const { return slice_; }
  virtual void show(const Sign& sign) = 0;
  // Shows it to all others and asks them. `in_earnest`: this rank is about to end the job.
  virtual void ask(const Sign& sign, bool in_earnest) = 0;
  // What all ranks have shown since then, as far as it has come.
  virtual std::vector<Sign> signs(Clock::time_point since) const = 0;
  // How long that may take.
  virtual Clock::duration answer_time() const = 0;
  // Whether another rank is about to end the job, and this one is to leave it to that.
  virtual bool left_to_another() const = 0;

  std::int64_t bytes_sent(Tag tag) const { return bytes_sent_[static_cast<std::size_t>(tag)]; }

 private:
  virtual Request begin_send(int to, Tag tag, std::span<const std::byte> bytes) = 0;

  std::array<std::int64_t, 2 * kTags> bytes_sent_{};
  double stall_timeout_s_ = 60;
  Clock::duration slice_ = std::chrono::milliseconds(100);
  ThreadPool* helpers_ = nullptr;
};

}  // namespace tandem
