// Rates of the CPU backend's calls: GFLOP/s of the products of MNIST-MLP, GB/s of the loops beside
// memcpy. `--benchmark_filter=REGEX` picks some.
#include <benchmark/benchmark.h>

#include <cstring>

#include "tensor/backend.h"

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
    backend.dropout(a, 0.5, Random(1), b, false);
  });
}
void sgd(benchmark::State& state) {
  measure(state, 20, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor& c) {
    backend.sgd({.rate = 1e-6, .momentum = 0.9}, a, b, c);
  });
}
void sum_rows(benchmark::State& state) {
  measure(state, 4, [](Backend& backend, const Tensor& a, const Tensor& b, const Tensor&) {
    backend.sum_rows(a.reshape({a.count() / 512, 512}), b.view(0, {512}), false);
  });
}

}  // namespace

// In the second-level cache, and out of it.
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

BENCHMARK_MAIN();
