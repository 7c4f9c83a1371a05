// Compares local response normalisation with obvious loops and with PyTorch, for different numbers
// of threads.
#include <doctest/doctest.h>

#include <cmath>

#include "tensor/backend.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

struct Naive {
  std::vector<double> y, dx;
};

Naive naive(const LocalResponseNorm& o, const std::vector<double>& x, const std::vector<double>& dy,
            std::int64_t channels) {
  Naive out{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const double alpha = o.alpha / static_cast<double>(o.size);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = static_cast<std::int64_t>(i) % channels;
    const std::int64_t first = std::max(c - o.size / 2, std::int64_t{0}),
                       last = std::min(c + (o.size - 1) / 2, channels - 1);
    const auto index = [&](std::int64_t j) { return i - static_cast<std::size_t>(c - j); };
    double s = o.k;
    for (std::int64_t j = first; j <= last; ++j) s += alpha * x[index(j)] * x[index(j)];
    out.y[i] = x[i] * std::pow(s, -o.beta);
    out.dx[i] += dy[i] * std::pow(s, -o.beta);
    for (std::int64_t j = first; j <= last; ++j)
      out.dx[index(j)] -=
          2 * alpha * o.beta * x[index(j)] * dy[i] * x[i] * std::pow(s, -o.beta - 1);
  }
  return out;
}

}  // namespace

TEST_CASE("response norm: both directions, for several sizes and powers") {
  const Device device = cpu_device(2);
  const LocalResponseNorm options[] = {
      {}, {5, 0.5, 0.75, 2}, {1, 2, 0.75, 1}, {4, 0.7, 0.75, 1}, {3, 0.3, 0.5, 1.5}, {9, 1, 1, 1}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const LocalResponseNorm& o : options)
      for (const Shape& shape :
           {Shape{1, 1}, Shape{2, 3, 5, 7}, Shape{7, 5, 9, 96}, Shape{3, 300}}) {
        CAPTURE(fmt::format("{} {} size {} beta {}", shape, name_of(dtype), o.size, o.beta));
        const Tensor x = random_tensor(shape, 1, dtype, device), y = x.clone();
        const Tensor dy = random_tensor(shape, 2, dtype, device);
        const Tensor dx = random_tensor(shape, 3, dtype, device);
        const Naive expected = naive(o, host(x), host(dy), shape[-1]);
        auto sum = host(dx);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += expected.dx[i];
        const double tolerance = dtype == Dtype::f64 ? 1e-12 : 2e-6;
        device.backend().local_response_norm(o, x, y);
        check_close(y, expected.y, tolerance);
        device.backend().local_response_norm_gradient(o, x, dy, dx, true);
        check_close(dx, sum, tolerance);
        device.backend().local_response_norm_gradient(o, x, dy, dx, false);
        check_close(dx, expected.dx, tolerance);
      }
}

TEST_CASE("response norm: PyTorch's numbers") {
  // torch.nn.LocalResponseNorm(size, alpha=0.3, beta=beta, k=1.5) of PyTorch 1.13, of the channels
  // x[i] = (7·i mod 41 - 20) / 4 of two pixels.
  struct Case {
    std::int64_t size;
    double beta;
    std::vector<double> y;
  };
  const Case cases[] = {
      {5,
       0.75,
       {-1.84851086, -1.20063618, -0.52909051, 0.1008206, 0.69716309, 1.34062026, -1.6993318,
        -1.69037024, -0.63782752, 0.19914321, 0.78268893, 1.30608976, -1.47307872, -0.94944269}},
      {4,
       0.75,
       {-1.71430354, -1.08161101, -0.4988007, 0.11657221, 0.87126375, 1.20340243, -1.52548819,
        -1.61039958, -0.66691251, 0.23800174, 0.9369868, 1.26992145, -1.31331939, -0.84987964}},
      {3,
       0.6,
       {-1.89091881, -1.19740571, -0.81089073, 0.15876668, 0.97484701, 1.33927343, -1.77409786,
        -1.7082808, -0.70763934, 0.31260878, 1.03788403, 1.41806816, -1.55428526, -1.14918604}}};
  const Device device = cpu_device();
  std::vector<double> values;
  for (int i = 0; i < 14; ++i) values.push_back((i * 7 % 41 - 20) / 4.0);
  const Tensor x = Tensor::from(values, {1, 1, 2, 7}, device), y = x.clone();
  for (const Case& c : cases) {
    device.backend().local_response_norm({c.size, 0.3, c.beta, 1.5}, x, y);
    check_close(y, c.y, 1e-8);
  }
}

TEST_CASE("response norm: the bits do not depend on the number of threads") {
  const auto result = [](int threads) {
    const Device device = cpu_device(threads);
    const Tensor x = random_tensor({3, 27, 27, 96}, 1, Dtype::f32, device), y = x.clone();
    device.backend().local_response_norm({}, x, y);
    auto all = host(y);
    device.backend().local_response_norm_gradient({}, x, x, y, true);
    for (const double v : host(y)) all.push_back(v);
    return all;
  };
  const auto one = result(1);
  CHECK(result(2) == one);
  CHECK(result(5) == one);
}
