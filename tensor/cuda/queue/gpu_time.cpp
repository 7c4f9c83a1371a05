#include "tensor/cuda/queue/gpu_time.h"

#include <algorithm>

#include "tensor/cuda/queue/event.h"
#include "tensor/cuda/queue/recording.h"

namespace tandem::cuda {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  double seconds(FunctionRef<void()> work) {
    start_.record(stream_);
    work();
    stop_.record(stream_);
    stop_.wait();
    return stop_.seconds_since(start_);
  }

 private:
  cudaStream_t stream_;
  CudaEvent start_{Event::Timing::on}, stop_{Event::Timing::on};
};

}  // namespace

double microseconds(cudaStream_t stream, FunctionRef<void()> work) {
  constexpr double kMicrosecondsPerGraph = 100;
  constexpr int kMostPerGraph = 20;
  constexpr int kGraphs = 5;

  work();  // loads kernels, which must not happen while a graph is recorded
  Stopwatch stopwatch(stream);
  const double once = 1e6 * stopwatch.seconds(work);
  // Short kernels take less time than the host needs to launch them, so a graph launches several at
  // once.
  const int times =
      std::clamp(static_cast<int>(kMicrosecondsPerGraph / std::max(once, 1.0)), 1, kMostPerGraph);
  Capture capture(stream);
  for (int i = 0; i < times; ++i) work();
  const auto graph = capture.end();
  graph->replay();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kGraphs; ++i)
    best = std::min(best, 1e6 * stopwatch.seconds([&] { graph->replay(); }));
  return best / times;
}

float milliseconds(cudaStream_t stream, FunctionRef<void()> work, float best) {
  constexpr int kRuns = 3;
  constexpr float kHopeless = 3;
  Stopwatch stopwatch(stream);
  work();
  float shortest = std::numeric_limits<float>::infinity();
  for (int run = 0; run < kRuns && !(shortest > kHopeless * best && run > 0); ++run) {
    work();  // keeps the GPU busy while the measured work is queued
    shortest = std::min(shortest, static_cast<float>(1e3 * stopwatch.seconds(work)));
  }
  return shortest;
}

}  // namespace tandem::cuda
