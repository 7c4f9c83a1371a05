#include "tensor/cuda/queue/gpu_time.h"

#include <algorithm>
#include <limits>

#include "tensor/cuda/queue/event.h"

namespace tandem::cuda {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  double microseconds(FunctionRef<void()> work) {
    start_.record(stream_);
    work();
    stop_.record(stream_);
    stop_.wait();
    return 1e6 * stop_.seconds_since(start_);
  }

 private:
  cudaStream_t stream_;
  CudaEvent start_{Event::Timing::on}, stop_{Event::Timing::on};
};

// What `work` queues, `times` times, to be launched as one.
class Graph {
 public:
  Graph(cudaStream_t stream, FunctionRef<void()> work, int times) : stream_(stream) {
    // Other threads may go on allocating memory meanwhile.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a graph");
    cudaGraph_t graph = nullptr;
    try {
      for (int i = 0; i < times; ++i) work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "recording a graph");
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "making a graph");
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() const { check(cudaGraphLaunch(graph_, stream_), "launching a graph"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

double microseconds(cudaStream_t stream, FunctionRef<void()> work) {
  constexpr double kMicrosecondsPerGraph = 100;
  constexpr int kMostPerGraph = 20;
  constexpr int kGraphs = 5;

  work();  // loads kernels, which must not happen while a graph is recorded
  Stopwatch stopwatch(stream);
  const double once = stopwatch.microseconds(work);
  // Short kernels run faster than the host can launch them one by one.
  const int times =
      std::clamp(static_cast<int>(kMicrosecondsPerGraph / std::max(once, 1.0)), 1, kMostPerGraph);
  const Graph graph(stream, work, times);
  graph.launch();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kGraphs; ++i)
    best = std::min(best, stopwatch.microseconds([&] { graph.launch(); }));
  return best / times;
}

}  // namespace tandem::cuda
