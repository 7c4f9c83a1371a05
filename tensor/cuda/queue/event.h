// Events of CUDA streams. A thread that waits for one spins for about 1 ms, because most events
// pass soon. Then it sleeps between queries. CUDA could wake it (cudaEventBlockingSync), but a
// stream takes only about 50 such events: whoever records more waits until the GPU has reached the
// first.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tensor/cuda/queue/check.h"
#include "tensor/event.h"

namespace tandem::cuda {

class CudaEvent : public Event {
 public:
  // Belongs to the current device.
  explicit CudaEvent(Timing timing = Timing::off) {
    check(cudaEventCreateWithFlags(
              &event_, timing == Timing::off ? cudaEventDisableTiming : cudaEventDefault),
          "creating an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // With `in_recording`, every replay of the recording records the event again.
  void record(cudaStream_t stream, bool in_recording = false) {
    check(cudaEventRecordWithFlags(event_, stream,
                                   in_recording ? cudaEventRecordExternal : cudaEventRecordDefault),
          "recording an event");
  }
  // Work queued on the stream from now on waits for this event.
  void hold_back(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event on the GPU");
  }
  // The same for an event that is a CudaEvent or null.
  static void let_wait(cudaStream_t stream, const EventPtr& event) {
    if (event) static_cast<const CudaEvent&>(*event).hold_back(stream);
  }

  void wait() const override {
    using Time = std::chrono::steady_clock;
    constexpr int kSpins = 50;
    constexpr auto kSpin = std::chrono::microseconds(20);  // a query delays other threads
    constexpr auto kSleep = std::chrono::microseconds(50);
    for (int queries = 0; !passed(); ++queries) {
      if (queries >= kSpins)
        std::this_thread::sleep_for(kSleep);
      else
        for (const auto next = Time::now() + kSpin; Time::now() < next;) std::this_thread::yield();
    }
  }
  bool passed() const override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status != cudaErrorNotReady) check(status, "querying an event");
    return status == cudaSuccess;
  }
  double seconds_since(const Event& earlier) const override {
    float milliseconds = 0;
    check(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
        "timing events");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Reuses events, because creating one takes longer than recording it.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  // The event returns to the pool when its last handle is destroyed, on any thread.
  std::shared_ptr<CudaEvent> take(Event::Timing timing) {
    std::unique_ptr<CudaEvent> event;
    {
      const std::lock_guard lock(mutex_);
      auto& free = free_[static_cast<std::size_t>(timing)];
      if (!free.empty()) {
        event = std::move(free.back());
        free.pop_back();
      }
    }
    if (!event) event = std::make_unique<CudaEvent>(timing);
    return {event.release(), [pool = shared_from_this(), timing](CudaEvent* used) {
              const std::lock_guard lock(pool->mutex_);
              pool->free_[static_cast<std::size_t>(timing)].emplace_back(used);
            }};
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<std::unique_ptr<CudaEvent>>, 2> free_;  // by timing
};

}  // namespace tandem::cuda
