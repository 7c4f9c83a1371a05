// A device's memory and its queue of work: copies, events, recordings, and transfers of batches and
// gradients between device and host. backend.h has the mathematics.
//
// The worker's compute thread makes the calls. On a CPU they return when the work is done. On a GPU
// they are queued on the worker's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tensor/encoded_staging.h"
#include "tensor/event.h"
#include "tensor/low_rank_staging.h"
#include "tensor/memory_pool.h"
#include "tensor/staging.h"
#include "tensor/tensor.h"

namespace tandem {

class Backend;

// Work that was recorded once and can be queued again with a single call. It reads and writes the
// same memory as when it was recorded.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// The meaning of bytes: value = byte · scale + offset, per channel (the last size).
struct ByteScale {
  std::vector<float> scale, offset;
};

// Copies batches from the host to a device while the device computes.
class Feed {
 public:
  virtual ~Feed() = default;

  // Converts bytes to f32 or bf16, and f32 to bf16, according to the type of `to`.
  struct Move {
    Tensor from, to;
  };
  // Queues the copies and returns. Work queued afterwards sees each `to` filled. Each `from` is
  // kept alive until it has been read. Every call must have the same number of moves.
  virtual void bring(std::span<const Move> moves) = 0;
};

class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  MemoryPool& memory() { return memory_; }
  virtual const char* name() const = 0;
  virtual bool is_cpu() const = 0;
  // Only one thread at a time makes calls. A thread calls this before its first call.
  virtual void use_on_this_thread() const {}

  // The host's memory may be reused as soon as the call returns.
  virtual void copy_from_host(std::span<const std::byte> from, const Tensor& to) = 0;
  virtual void copy_to_host(const Tensor& from, std::span<std::byte> to) = 0;
  virtual void copy(const Tensor& from, const Tensor& to) = 0;

  // Work runs in the order in which it is queued. An event is a point in the queue; a null event
  // has passed.
  virtual EventPtr record_event(Event::Timing timing = Event::Timing::off) {
    (void)timing;
    return nullptr;
  }
  virtual void wait_for(const EventPtr& event) { (void)event; }
  // Host memory from which this device copies fast; null if the device is the host.
  virtual std::shared_ptr<Backend> make_host() { return nullptr; }
  // Queues a copy to such memory. The copy is complete when an event recorded afterwards has
  // passed.
  virtual void read_later(const Tensor& from, const Tensor& to_host) { copy(from, to_host); }
  // Transfers gradients between this device and the host; null if the host can access them
  // directly.
  virtual std::unique_ptr<Staging> make_staging(Packing packing, std::int64_t count,
                                                std::int64_t block) {
    (void)packing, (void)count, (void)block;
    return nullptr;
  }
  // Whether this device can encode gradients; and the stagings for that.
  virtual bool encodes() const { return false; }
  virtual std::unique_ptr<EncodedStaging> make_encoded_staging(
      const EncodedStaging::Layout& layout) {
    (void)layout;
    return nullptr;
  }
  virtual std::unique_ptr<LowRankStaging> make_low_rank_staging(
      const LowRankStaging::Layout& layout) {
    (void)layout;
    return nullptr;
  }
  // Transfers batches to this device; null if they are made in its memory.
  virtual std::unique_ptr<Feed> make_feed(const ByteScale& scale) {
    (void)scale;
    return nullptr;
  }
  // Runs work(cut) and records what it queues, for replay. Sizes and addresses are fixed. Each call
  // of cut() ends a recording and begins the next. Returns them in order; none, without running
  // `work`, if the device cannot record.
  using Cut = std::function<void()>;
  virtual std::vector<std::unique_ptr<Recording>> record(
      const std::function<void(const Cut& cut)>& work) {
    (void)work;
    return {};
  }
  // Sets the random numbers of the work that follows.
  virtual void begin_step(const Random& random) { (void)random; }

 protected:
  DeviceQueue(MemoryPool::Allocate allocate, MemoryPool::Free free)
      : memory_(std::move(allocate), std::move(free)) {}

 private:
  MemoryPool memory_;
};

}  // namespace tandem
