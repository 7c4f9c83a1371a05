// Compares batch normalisation with obvious loops, in all its forms and for different numbers of
// threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "tensor/backend.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using After = ChannelNorm::After;

// The last two have three tiles (tensor/cpu/channel_rows.h).
const Shape kShapes[] = {{2, 1},          {1, 2, 1, 3}, {7, 5, 3, 5}, {3, 17, 19, 16}, {2000, 3},
                         {5, 11, 13, 64}, {3, 1025},    {135, 1100},  {2, 33, 35, 67}};

struct Statistics {
  std::vector<double> mean, variance;
  double n;
};

Statistics statistics(const std::vector<double>& x, std::size_t channels) {
  Statistics s{std::vector<double>(channels), std::vector<double>(channels),
               static_cast<double>(x.size() / channels)};
  for (std::size_t i = 0; i < x.size(); ++i) s.mean[i % channels] += x[i] / s.n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - s.mean[i % channels];
    s.variance[i % channels] += d * d / s.n;
  }
  return s;
}

// A norm with the statistics of x, and random weights.
ChannelNorm norm_of(const Tensor& x, After after) {
  const std::int64_t channels = x.size(-1);
  const auto make = [&](std::uint64_t seed) {
    return random_tensor({channels}, seed, x.dtype(), x.device());
  };
  const ChannelNorm norm{make(1), make(2), make(3), make(4), after};
  x.backend().batch_statistics(x, 1e-5, norm.mean, norm.inverse_deviation, {make(5), make(6), 0.1});
  return norm;
}

template <class F>
void each_case(F&& f) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Shape& shape : kShapes) {
      CAPTURE(fmt::format("{} {}", shape, name_of(dtype)));
      f(dtype, shape);
    }
}

}  // namespace

TEST_CASE("batch norm: batch statistics and running statistics") {
  const Device device = cpu_device(2);
  each_case([&](Dtype dtype, const Shape& shape) {
    const std::int64_t channels = shape[-1];
    const Tensor x = random_tensor(shape, 1, dtype, device);
    const Tensor mean = Tensor::empty({channels}, dtype, device), inverse = mean.clone();
    const Tensor running_mean = random_tensor({channels}, 2, dtype, device);
    const Tensor running_variance = random_tensor({channels}, 3, dtype, device);
    const Statistics s = statistics(host(x), static_cast<std::size_t>(channels));
    auto moved_mean = host(running_mean), moved_variance = host(running_variance);
    std::vector<double> inverses(s.mean.size());
    for (std::size_t c = 0; c < s.mean.size(); ++c) {
      inverses[c] = 1 / std::sqrt(s.variance[c] + 1e-3);
      moved_mean[c] = 0.7 * moved_mean[c] + 0.3 * s.mean[c];
      moved_variance[c] = 0.7 * moved_variance[c] + 0.3 * s.variance[c] * s.n / (s.n - 1);
    }
    device.backend().batch_statistics(x, 1e-3, mean, inverse,
                                      {running_mean, running_variance, 0.3});
    const double tolerance = dtype == Dtype::f64 ? 1e-12 : 2e-6;
    check_close(mean, s.mean, tolerance);
    check_close(inverse, inverses, 30 * tolerance);
    check_close(running_mean, moved_mean, tolerance);
    check_close(running_variance, moved_variance, tolerance);

    device.backend().inverse_deviation(
        dtype == Dtype::f64 ? Tensor::from(s.variance, {channels}, device)
                            : Tensor::from(std::vector<float>(s.variance.begin(), s.variance.end()),
                                           {channels}, device),
        1e-3, inverse);
    check_close(inverse, inverses, 30 * tolerance);
  });
}

TEST_CASE("batch norm: a mean much larger than the deviation costs no precision beyond x's own") {
  const Device device = cpu_device(2);
  for (const std::int64_t channels : {3, 16, 64, 1100}) {
    const std::int64_t rows = 40'000 / channels + 500;
    Random random(1);
    std::vector<float> values(static_cast<std::size_t>(rows * channels));
    for (float& v : values) v = static_cast<float>(1000 + random.normal());
    const Tensor x = Tensor::from(values, {rows, channels}, device);
    const Statistics s = statistics(host(x), static_cast<std::size_t>(channels));
    const ChannelNorm norm = norm_of(x, After::nothing);
    std::vector<double> inverses(s.mean.size());
    for (std::size_t c = 0; c < inverses.size(); ++c)
      inverses[c] = 1 / std::sqrt(s.variance[c] + 1e-5);
    check_close(norm.mean, s.mean, 3.1e-5);  // half a unit in the last place of 1000
    check_close(norm.inverse_deviation, inverses, 1e-6);

    const Tensor y = Tensor::empty(x.shape(), Dtype::f32, device);
    device.backend().channel_norm(norm, x, Tensor(), y);
    const auto w = host(norm.weight), b = host(norm.bias);
    std::vector<double> expected = host(x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t c = i % w.size();
      expected[i] = (expected[i] - s.mean[c]) * inverses[c] * w[c] + b[c];
    }
    check_close(y, expected, 5e-5);
  }
}

TEST_CASE("batch norm: a value far from all others, in the first row or elsewhere") {
  const Device device = cpu_device();
  for (const std::size_t where : {0, 5, 4321}) {
    std::vector<float> values(30'000, 0.125F);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 0.25F;
    values[where] = 1e4F;
    const Tensor x = Tensor::from(values, {10'000, 3}, device);
    const Statistics s = statistics(host(x), 3);
    const ChannelNorm norm = norm_of(x, After::nothing);
    const auto inverse = host(norm.inverse_deviation);
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(inverse[c] == doctest::Approx(1 / std::sqrt(s.variance[c] + 1e-5)).epsilon(1e-5));
  }
}

TEST_CASE("batch norm: forward in all forms") {
  const Device device = cpu_device(2);
  each_case([&](Dtype dtype, const Shape& shape) {
    const Tensor x = random_tensor(shape, 1, dtype, device), y = x.clone();
    const Tensor residual = random_tensor(shape, 7, dtype, device);
    for (const After after : {After::nothing, After::relu, After::add_relu}) {
      const ChannelNorm norm = norm_of(x, after);
      const auto vx = host(x), vr = host(residual), mean = host(norm.mean),
                 inverse = host(norm.inverse_deviation), w = host(norm.weight), b = host(norm.bias);
      std::vector<double> expected(vx.size());
      for (std::size_t i = 0; i < vx.size(); ++i) {
        const std::size_t c = i % w.size();
        double z = (vx[i] - mean[c]) * inverse[c] * w[c] + b[c];
        if (after == After::add_relu) z += vr[i];
        expected[i] = after == After::nothing ? z : std::max(z, 0.0);
      }
      device.backend().channel_norm(norm, x, after == After::add_relu ? residual : Tensor(), y);
      check_close(y, expected, dtype == Dtype::f64 ? 1e-12 : 3e-6);
    }
  });
}

TEST_CASE("batch norm: backward in all forms, overwriting and accumulating, for all subsets") {
  const Device device = cpu_device(2);
  each_case([&](Dtype dtype, const Shape& shape) {
    const std::int64_t channels = shape[-1];
    const auto random = [&](const Shape& s, std::uint64_t seed) {
      return random_tensor(s, seed, dtype, device);
    };
    const Tensor x = random(shape, 1), y = x.clone(), dy = random(shape, 2);
    // What the gradients of x, residual, weight and bias are added to.
    const Tensor old[] = {random(shape, 10), random(shape, 11), random({channels}, 12),
                          random({channels}, 13)};
    const std::vector<double> old_values[] = {host(old[0]), host(old[1]), host(old[2]),
                                              host(old[3])};
    for (const After after : {After::nothing, After::relu, After::add_relu}) {
      const ChannelNorm norm = norm_of(x, after);
      const bool add = after == After::add_relu;
      device.backend().channel_norm(norm, x, add ? random(shape, 3) : Tensor(), y);

      const auto vx = host(x), vy = host(y), vdy = host(dy), mean = host(norm.mean),
                 inverse = host(norm.inverse_deviation), w = host(norm.weight);
      std::vector<double> masked(vx.size()), dx(vx.size()), dw(w.size()), db(w.size());
      const double n = static_cast<double>(vx.size()) / static_cast<double>(w.size());
      const auto hat = [&](std::size_t i) {
        return (vx[i] - mean[i % w.size()]) * inverse[i % w.size()];
      };
      for (std::size_t i = 0; i < vx.size(); ++i) {
        masked[i] = after != After::nothing && vy[i] == 0 ? 0 : vdy[i];
        db[i % w.size()] += masked[i];
        dw[i % w.size()] += masked[i] * hat(i);
      }
      double largest = 1;
      for (std::size_t i = 0; i < vx.size(); ++i) {
        const std::size_t c = i % w.size();
        dx[i] = w[c] * inverse[c] * (masked[i] - db[c] / n - hat(i) * dw[c] / n);
        largest = std::max(largest, std::abs(w[c] * inverse[c]));
      }

      // Bits of `wanted`: x, residual, weight, bias; of `accumulate` likewise.
      std::set<std::pair<int, int>> ways;
      for (const int wanted : {15, 1, 2, 12, 13, 7})
        for (const int accumulate : {0, 15, 1, 2}) {
          const int possible = add ? wanted : wanted & ~2;
          ways.emplace(possible, accumulate & possible);
        }
      for (const std::pair<int, int>& way : ways) {
        const int wanted = way.first, accumulate = way.second;
        CAPTURE(wanted);
        CAPTURE(accumulate);
        const auto make = [&](int bit) {
          if (!(wanted >> bit & 1)) return GradientInto{};
          return GradientInto{old[bit].clone(), (accumulate >> bit & 1) != 0};
        };
        const ChannelNormGradients into{make(0), make(1), make(2), make(3)};
        device.backend().channel_norm_gradient(norm, x, add ? y : Tensor(), dy, {}, into);
        const auto check = [&](const GradientInto& g, int bit, const std::vector<double>& gradient,
                               double tolerance) {
          if (!g.tensor.defined()) return;
          std::vector<double> expected = gradient;
          if (g.accumulate)
            std::ranges::transform(expected, old_values[bit], expected.begin(), std::plus());
          check_close(g.tensor, expected, tolerance);
        };
        const double tolerance = dtype == Dtype::f64 ? 1e-12 : 3e-6;
        check(into.x, 0, dx, 2 * largest * tolerance);
        check(into.residual, 1, masked, tolerance);
        check(into.weight, 2, dw, tolerance * n);
        check(into.bias, 3, db, tolerance * n);
      }
    }
  });
}

TEST_CASE("batch norm: NaN stays visible, and empty input works") {
  const Device device = cpu_device();
  std::vector<float> values(300, 1);
  values[7] = std::nanf("");
  const Tensor x = Tensor::from(values, {100, 3}, device), y = x.clone();
  const ChannelNorm norm = norm_of(x, After::relu);
  device.backend().channel_norm(norm, x, Tensor(), y);
  CHECK(std::isnan(host(y)[1]));
  CHECK(!std::isnan(host(y)[0]));

  const Tensor none = Tensor::empty({0, 3}, Dtype::f32, device);
  device.backend().channel_norm(norm, none, Tensor(), none.clone());
}

TEST_CASE("batch norm: the bits do not depend on the number of threads") {
  const auto result = [](int threads) {
    const Device device = cpu_device(threads);
    Backend& backend = device.backend();
    std::vector<double> all;
    const auto keep = [&](const Tensor& t) {
      const auto values = host(t);
      all.insert(all.end(), values.begin(), values.end());
    };
    for (const Shape& shape : {Shape{3, 57, 59, 67}, Shape{40'001, 3}, Shape{301, 1100}}) {
      const Tensor x = random_tensor(shape, 1, Dtype::f32, device), y = x.clone(), dx = x.clone(),
                   dr = x.clone();
      const ChannelNorm norm = norm_of(x, After::add_relu);
      keep(norm.mean);
      keep(norm.inverse_deviation);
      backend.channel_norm(norm, x, dx, y);
      keep(y);
      const Tensor dw = norm.weight.clone(), db = norm.bias.clone();
      backend.channel_norm_gradient(norm, x, y, x, {}, {{dx, true}, {dr}, {dw}, {db}});
      for (const Tensor& t : {dx, dr, dw, db}) keep(t);
    }
    return all;
  };
  const auto one = result(1);
  CHECK(result(2) == one);
  CHECK(result(5) == one);
}
