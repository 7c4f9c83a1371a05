// Events of CUDA's streams. A thread that waits for one looks for a moment, since most pass soon
// and to be woken takes long, and then sleeps.
#pragma once

#include <chrono>
#include <thread>

#include "tensor/cuda/check.h"
#include "tensor/event.h"

namespace tandem::cuda {

class CudaEvent : public Event {
 public:
  // Of the device that is current.
  explicit CudaEvent(Timing timing = Timing::off) {
    const unsigned flags =
        cudaEventBlockingSync | (timing == Timing::off ? cudaEventDisableTiming : cudaEventDefault);
    check(cudaEventCreateWithFlags(&event_, flags), "making an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // In a recording, every replay passes the event anew.
  void record(cudaStream_t stream, bool in_recording = false) {
    check(cudaEventRecordWithFlags(event_, stream,
                                   in_recording ? cudaEventRecordExternal : cudaEventRecordDefault),
          "recording an event");
  }
  // What is queued on the stream from now on waits for this event.
  void hold_back(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event on the GPU");
  }

  void wait() const override {
    constexpr auto kMoment = std::chrono::microseconds(500);
    const auto end = std::chrono::steady_clock::now() + kMoment;
    cudaError_t status = cudaEventQuery(event_);
    while (status == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      status = cudaEventQuery(event_);
    }
    if (status == cudaErrorNotReady) status = cudaEventSynchronize(event_);
    check(status, "waiting for an event");
  }
  double seconds_since(const Event& earlier) const override {
    float milliseconds = 0;
    check(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
        "timing events");
    return 1e-3 * static_cast<double>(milliseconds);
  }

  // The same for an event that is one of CUDA's or null.
  static void let_wait(cudaStream_t stream, const EventPtr& event) {
    if (event) static_cast<const CudaEvent&>(*event).hold_back(stream);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tandem::cuda
