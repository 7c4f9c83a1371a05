// Rates of the CPU backend's calls. Matrix products and convolutions are in GFLOP/s, counted as if
// every product of the definition were computed. Other loops are in GB/s, compared with memcpy;
// only the least necessary reads and writes are counted. `--benchmark_filter=REGEX` selects some.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "tensor/backend.h"
#include "train/app.h"
#include "train/version.h"

using namespace tandem;

namespace {

Tensor filled(const Shape& shape, const Device& device) {
  Random random(1);
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return Tensor::from(values, shape, device);
}

// Arguments: m, n, k, transpose a, transpose b, threads.
void matmul(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const bool ta = state.range(3), tb = state.range(4);
  const Device device = cpu_device(static_cast<int>(state.range(5)));
  const Matmul product{.a = filled(ta ? Shape{k, m} : Shape{m, k}, device),
                       .transpose_a = ta,
                       .b = filled(tb ? Shape{n, k} : Shape{k, n}, device),
                       .transpose_b = tb,
                       .c = filled({m, n}, device)};
  for (auto _ : state) device.backend().matmul(product);
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(m * n * k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(matmul)
    ->ArgNames({"m", "n", "k", "ta", "tb", "threads"})
    ->ArgsProduct({{100}, {500}, {784}, {0}, {1}, {1, 2}})  // forward, first layer
    ->ArgsProduct({{500}, {784}, {100}, {1}, {0}, {1, 2}})  // its weight gradient
    ->ArgsProduct({{100}, {500}, {500}, {0}, {0}, {1, 2}})  // input gradient, second layer
    ->ArgsProduct({{2048}, {2048}, {2048}, {0}, {0}, {1, 2}})
    ->UseRealTime();

// Arguments: images, width and height in pixels, channels, filters, window, stride, threads. The
// padding is half a window.
enum class Way { forward, data_gradient, filter_gradient };
void convolution(benchmark::State& state, Way way) {
  const std::int64_t n = state.range(0), pixels = state.range(1), channels = state.range(2),
                     filters = state.range(3), window = state.range(4);
  const Convolution o{.stride = state.range(5), .padding = window / 2};
  const Device device = cpu_device(static_cast<int>(state.range(6)));
  const std::int64_t out = o.rows(pixels, window);
  const Tensor x = filled({n, pixels, pixels, channels}, device);
  const Tensor filter = filled({filters, window, window, channels}, device);
  const Tensor y = filled({n, out, out, filters}, device);
  for (auto _ : state) {
    if (way == Way::forward) device.backend().conv2d(o, x, filter, Tensor(), false, y);
    if (way == Way::data_gradient) device.backend().conv2d_data_gradient(o, y, filter, x, false);
    if (way == Way::filter_gradient)
      device.backend().conv2d_filter_gradient(o, x, y, filter, false);
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * static_cast<double>(y.count() * window * window * channels),
                         benchmark::Counter::kIsIterationInvariantRate);
}
#define CONVOLUTIONS(name, way)                                                         \
  BENCHMARK_CAPTURE(convolution, name, way)                                             \
      ->ArgNames({"n", "pixels", "channels", "filters", "window", "stride", "threads"}) \
      ->Args({8, 56, 64, 64, 3, 1, 1}) /* ResNet-18, from its first stage... */         \
      ->Args({8, 28, 128, 128, 3, 1, 1})                                                \
      ->Args({8, 14, 256, 256, 3, 1, 1})                                                \
      ->Args({8, 7, 512, 512, 3, 1, 1})  /* ...to its last */                           \
      ->Args({8, 56, 64, 128, 3, 2, 1})  /* between two stages */                       \
      ->Args({4, 56, 256, 64, 1, 1, 1})  /* ResNet-50 */                                \
      ->Args({16, 27, 64, 192, 5, 1, 1}) /* AlexNet */                                  \
      ->Args({100, 16, 32, 32, 5, 1, 1}) /* the CIFAR net */                            \
      ->Unit(benchmark::kMillisecond)                                                   \
      ->UseRealTime()
CONVOLUTIONS(forward, Way::forward);
CONVOLUTIONS(data_gradient, Way::data_gradient);
CONVOLUTIONS(filter_gradient, Way::filter_gradient);

// A loop over `count` elements that moves `bytes_per_element`.
template <class Call>
void measure(benchmark::State& state, std::int64_t bytes_per_element, Call call) {
  const std::int64_t count = state.range(0);
  const Device device = cpu_device(static_cast<int>(state.range(1)));
  const Tensor a = filled({count}, device), b = filled({count}, device),
               c = filled({count}, device);
  for (auto _ : state) {
    call(device.backend(), a, b, c);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * count * bytes_per_element);
}

void memcpy_(benchmark::State& state) {
  measure(state, 8, [](Backend&, const Tensor& a, const Tensor& b, const Tensor&) {
    std::memcpy(b.raw(), a.raw(), a.bytes());
  });
}
void relu(benchmark::State& state) {
  measure(state, 8, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor&) {
    backend.relu(a, b);
  });
}
void relu_gradient(benchmark::State& state) {
  measure(state, 12, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor& c) {
    backend.relu_gradient(a, b, c, false);
  });
}
void add(benchmark::State& state) {
  measure(state, 12, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor& c) {
    backend.add(a, b, c);
  });
}
void dropout(benchmark::State& state) {
  measure(state, 8, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor&) {
    backend.dropout(a, 0.5, {Random(1)}, b, false);
  });
}
void sgd(benchmark::State& state) {
  measure(state, 20, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor& c) {
    backend.sgd({.rate = 1e-6, .momentum = 0.9}, a, b, c, {});
  });
}
void sum_rows(benchmark::State& state) {
  measure(state, 4, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor&) {
    backend.sum_rows(a.reshape({a.count() / 512, 512}), b.view(0, {512}), false);
  });
}

// Images [n, h, w, c] and other tensors that several calls need. `bytes` is one call's memory
// traffic.
struct Images {
  explicit Images(benchmark::State& state)
      : device(cpu_device(static_cast<int>(state.range(4)))),
        shape{state.range(0), state.range(1), state.range(2), state.range(3)},
        norm{.mean = channels(),
             .inverse_deviation = channels(),
             .weight = channels(),
             .bias = channels()},
        running{channels(), channels()} {}
  Tensor channels() { return filled({shape[3]}, device); }
  Tensor image() { return filled(shape, device); }
  Tensor pooled(const Pool& pool) {
    return filled({shape[0], pool.positions(shape[1]), pool.positions(shape[2]), shape[3]}, device);
  }
  void measure(benchmark::State& state, std::int64_t bytes, auto call) {
    for (auto _ : state) {
      call(device.backend());
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * bytes);
  }

  Device device;
  Shape shape;
  ChannelNorm norm;
  RunningStatistics running;
};

// Forward: a pass for the statistics and one for y. Gradient: a pass for the sums and one for dx.
void batch_norm(benchmark::State& state, ChannelNorm::After after) {
  Images m(state);
  m.norm.after = after;
  const Tensor x = m.image(), y = m.image();
  const Tensor residual = after == ChannelNorm::After::add_relu ? m.image() : Tensor();
  m.measure(state, (residual.defined() ? 16 : 12) * x.count(), [&](Backend& backend) {
    backend.batch_statistics(x, 1e-5, m.norm.mean, m.norm.inverse_deviation, m.running);
    backend.channel_norm(m.norm, x, residual, y);
  });
}
void batch_norm_gradient(benchmark::State& state, ChannelNorm::After after) {
  Images m(state);
  m.norm.after = after;
  const bool add = after == ChannelNorm::After::add_relu;
  const Tensor x = m.image(), y = m.image(), dy = m.image();
  const ChannelNormGradients into{
      {m.image()}, {add ? m.image() : Tensor()}, {m.channels()}, {m.channels()}};
  m.measure(state, (add ? 28 : 20) * x.count(),
            [&](Backend& backend) { backend.channel_norm_gradient(m.norm, x, y, dy, {}, into); });
}
void batch_norm_inference(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.image();
  m.norm.after = ChannelNorm::After::relu;
  m.measure(state, 8 * x.count(), [&](Backend& b) { b.channel_norm(m.norm, x, Tensor(), y); });
}
void batch_statistics(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image();
  m.measure(state, 4 * x.count(), [&](Backend& backend) {
    backend.batch_statistics(x, 1e-5, m.norm.mean, m.norm.inverse_deviation, m.running);
  });
}

constexpr Pool kMaxPool{.window = 3, .stride = 2, .padding = 1};
constexpr Pool kAveragePool{.window = 2, .stride = 2};
void max_pool(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.pooled(kMaxPool);
  const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, m.device);
  m.measure(state, 4 * x.count() + 5 * y.count(),
            [&](Backend& backend) { backend.max_pool(kMaxPool, x, y, winners); });
}
void max_pool_gradient(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.pooled(kMaxPool);
  const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, m.device);
  m.device.backend().max_pool(kMaxPool, x, y, winners);
  m.measure(state, 4 * x.count() + 5 * y.count(),
            [&](Backend& backend) { backend.max_pool_gradient(kMaxPool, winners, y, x, false); });
}
void average_pool(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.pooled(kAveragePool);
  m.measure(state, 4 * (x.count() + y.count()),
            [&](Backend& backend) { backend.average_pool(kAveragePool, x, y); });
}
void average_pool_gradient(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.pooled(kAveragePool);
  m.measure(state, 4 * (x.count() + y.count()),
            [&](Backend& backend) { backend.average_pool_gradient(kAveragePool, y, x, false); });
}
void global_average_pool(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = filled({m.shape[0], m.shape[3]}, m.device);
  m.measure(state, 4 * x.count(), [&](Backend& backend) { backend.global_average_pool(x, y); });
}
void global_average_pool_gradient(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = filled({m.shape[0], m.shape[3]}, m.device);
  m.measure(state, 4 * x.count(),
            [&](Backend& backend) { backend.global_average_pool_gradient(y, x, false); });
}
void response_norm(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), y = m.image();
  m.measure(state, 8 * x.count(), [&](Backend& b) { b.local_response_norm({}, x, y); });
}
void response_norm_gradient(benchmark::State& state) {
  Images m(state);
  const Tensor x = m.image(), dy = m.image(), dx = m.image();
  m.measure(state, 12 * x.count(),
            [&](Backend& b) { b.local_response_norm_gradient({}, x, dy, dx, false); });
}

}  // namespace

// Sizes that fit into the second-level cache, and that do not.
#define LOOP(name)                                 \
  BENCHMARK(name)                                  \
      ->ArgNames({"count", "threads"})             \
      ->ArgsProduct({{51'200, 4'194'304}, {1, 2}}) \
      ->UseRealTime()
BENCHMARK(memcpy_)
    ->Name("memcpy")
    ->ArgNames({"count", "threads"})
    ->ArgsProduct({{51'200, 4'194'304}, {1}})
    ->UseRealTime();
LOOP(relu);
LOOP(relu_gradient);
LOOP(add);
LOOP(dropout);
LOOP(sgd);
LOOP(sum_rows);

// Sizes from ResNet-50 on ImageNet, ResNet-20 on CIFAR, and ResNet-50's later stages.
#define IMAGES(benchmark)                              \
  benchmark->ArgNames({"n", "h", "w", "c", "threads"}) \
      ->Args({8, 56, 56, 64, 1})                       \
      ->Args({8, 56, 56, 64, 2})                       \
      ->Args({128, 32, 32, 16, 1})                     \
      ->Args({4, 14, 14, 1024, 1})                     \
      ->UseRealTime()
IMAGES(BENCHMARK(batch_statistics));
IMAGES(BENCHMARK(batch_norm_inference));
IMAGES(BENCHMARK_CAPTURE(batch_norm, alone, ChannelNorm::After::nothing));
IMAGES(BENCHMARK_CAPTURE(batch_norm, relu, ChannelNorm::After::relu));
IMAGES(BENCHMARK_CAPTURE(batch_norm, add_relu, ChannelNorm::After::add_relu));
IMAGES(BENCHMARK_CAPTURE(batch_norm_gradient, alone, ChannelNorm::After::nothing));
IMAGES(BENCHMARK_CAPTURE(batch_norm_gradient, relu, ChannelNorm::After::relu));
IMAGES(BENCHMARK_CAPTURE(batch_norm_gradient, add_relu, ChannelNorm::After::add_relu));
IMAGES(BENCHMARK(max_pool));
IMAGES(BENCHMARK(max_pool_gradient));
IMAGES(BENCHMARK(average_pool));
IMAGES(BENCHMARK(average_pool_gradient));
IMAGES(BENCHMARK(global_average_pool));
IMAGES(BENCHMARK(global_average_pool_gradient));
IMAGES(BENCHMARK(response_norm));
IMAGES(BENCHMARK(response_norm_gradient));

int main(int argc, char** argv) {
  return run_app("bench_kernels", [&] {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
      fmt::print("{}\n", version_line());
      return;
    }
    benchmark::Initialize(&argc, argv);
    if (argc > 1) throw UserError("{} is not an option; --help lists them", argv[1]);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
  });
}
