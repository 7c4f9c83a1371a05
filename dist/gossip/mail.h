// Letters between workers that do not wait for each other. A letter carries a worker's weights. It
// may come from any worker at any time, so a worker's communication thread must always be ready to
// take one. Mail is a long job for that thread: it begins with open() and ends with close().
//
//   compute thread          communication thread                     other workers
//   send(letter)  ────────▶ header on Tag::control, values on Tag::push ────────▶
//                           take(letter)  ◀─────────────────────────────────────
//   look()        ◀──────── pass_on(letter), or answer(letter) on Tag::pull ─────▶
//
// A header says what follows. So at any time one small receive is enough, from any rank, and memory
// for weights is needed only when there are some.
//
// All workers close their mail after the same iterations. Each then sends a goodbye to each other
// worker. It goes on to take and answer letters until all goodbyes have come. Then no letter is in
// flight, and the communication thread can run other jobs. A worker that opens its mail again may
// be faster than one that still waits for goodbyes. So the headers of two sessions in a row are on
// different channels.
//
// Headers and goodbyes are Tag::control, which does not count as training traffic. Kept weights do
// not, either: they are for tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/queue.h"
#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/tensor.h"

namespace tandem {

struct Letter {
  enum class Kind : std::int64_t {
    goodbye,  // the last one of a session; it has no values
    weights,  // to be averaged with the receiver's
    kept,     // weights to be tested later
    answer,   // given to send(): the compute thread waits for it
  };
  Kind kind = Kind::weights;
  int peer = -1;               // to whom, or from whom
  std::int64_t iteration = 0;  // the sender's
  double share = 1;            // of these weights in a mean
  Tensor values = {};          // in host memory; see Mail::new_values()
  EventPtr ready = nullptr;    // of a letter to be sent: after it, the values may be read
  bool wants_answer = false;
};

inline std::span<std::byte> bytes_of(const Tensor& values) {
  return {values.raw(), values.bytes()};
}

class Mail {
 public:
  using Take = std::function<void(Letter letter)>;
  // The communication thread calls take(letter) for each letter that arrives. An answer goes to
  // wait_for_answer() without it.
  Mail(const StrategyContext& context, Take take);

  // Memory for the values of a letter. The host can read it, and the device can copy to it fast.
  Tensor new_values() const { return Tensor::empty({count_}, Dtype::f32, host_); }
  const Device& host() const { return host_; }
  // Throws Diverged if values, in host memory, are not finite.
  void require_finite(const Tensor& values, std::int64_t iteration) const;

  // ---- For the compute thread. All but is_open() rethrow a failure of the communication thread.
  bool is_open() const { return open_; }
  void open();
  // If several letters are still on their way, waits until one of them has been sent: a network
  // that is slower than the workers must not fill their memory.
  void send(Letter letter);
  // The oldest letter that was passed on; nothing if there is none.
  std::optional<Letter> look();
  // Waits for the answer to the last letter.
  Letter wait_for_answer();
  // Waits until all workers have closed their mail. Returns the letters that were passed on.
  std::vector<Letter> close();

  // ---- For `take`, on the communication thread.
  void pass_on(Letter letter) { inbox_.put(std::move(letter)); }
  void answer(Letter letter);

 private:
  struct Header {
    Letter::Kind kind{};
    std::int64_t iteration = 0;
    double share = 0;
  };
  // In each, requests come last: they are cancelled before their memory is freed.
  struct Sending {
    Header header;
    Tensor values;
    bool counts = false;  // the compute thread counts it
    Request head, body;
  };
  struct Receiving {
    Letter letter;
    Request body;
  };

  void run();
  bool over() const;
  void take_outgoing();
  void start(const Letter& letter);
  void say_goodbye();
  void receive_header();
  void take_header();
  void receive(Letter letter, Tag tag, std::list<Receiving>& list);
  void wait_for_requests();
  void deliver();
  Tag header_tag() const;

  StrategyContext c_;
  Take take_;
  Transport& transport_;
  Device host_;
  std::int64_t count_;  // elements of the weights
  bool open_ = false;
  std::int64_t session_ = 0;
  static constexpr int kMostUnsent = 4;
  int unsent_ = 0;  // letters, as far as the compute thread knows
  BlockingQueue<Letter> outgoing_, inbox_;
  struct Sent {};
  BlockingQueue<Sent> sent_;                  // one for each letter of the compute thread
  std::atomic<bool> waits_for_room_ = false;  // the compute thread

  // Of the communication thread. If the job fails, requests keep their memory until this object is
  // destroyed: MPI does not cancel them.
  std::list<Letter> queued_;  // to be sent; a GPU may still write their values
  bool closing_ = false;
  bool answer_awaited_ = false;  // by the compute thread, which does nothing else
  int goodbyes_ = 0;             // that have come
  Header header_;
  Request header_request_;
  std::list<Sending> sends_;
  std::list<Receiving> letters_, answers_;
};

}  // namespace tandem
