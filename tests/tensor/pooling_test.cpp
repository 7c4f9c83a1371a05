// Compares pooling with obvious loops and with PyTorch, for different numbers of threads.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "tensor/backend.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Pool kPools[] = {{2, 2, 0, false}, {3, 2, 1, false}, {3, 2, 0, true},
                       {3, 2, 1, true},  {2, 3, 1, true},  {5, 3, 2, true},
                       {1, 1, 0, false}, {3, 5, 1, true},  {4, 1, 2, false}};
// Of means.
const Pool kNotCounting[] = {{3, 1, 1, false, false},
                             {3, 2, 1, true, false},
                             {5, 3, 2, true, false},
                             {4, 1, 2, false, false}};
const Shape kImages[] = {{1, 5, 4, 1}, {2, 7, 9, 3}, {3, 13, 11, 22}, {2, 30, 31, 70}};

std::size_t at(const Shape& s, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return static_cast<std::size_t>(((n * s[1] + h) * s[2] + w) * s[3] + c);
}

Shape pooled(const Pool& pool, const Shape& x) {
  return {x[0], pool.positions(x[1]), pool.positions(x[2]), x[3]};
}

// Calls f(y index, x index, row · window + column, pixels) for each pixel of each window, where
// `pixels` is what AvgPool2d divides by.
template <class F>
void each_pixel(const Pool& pool, const Shape& x, F&& f) {
  const Shape y = pooled(pool, x);
  const auto length = [&](std::int64_t position, std::int64_t size) {
    const std::int64_t start = position * pool.stride - pool.padding;
    if (!pool.count_padding)
      return std::min(start + pool.window, size) - std::max<std::int64_t>(start, 0);
    return std::min(start + pool.window, size + pool.padding) - start;
  };
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t p = 0; p < y[1]; ++p)
      for (std::int64_t q = 0; q < y[2]; ++q)
        for (std::int64_t c = 0; c < y[3]; ++c)
          for (std::int64_t r = 0; r < pool.window; ++r)
            for (std::int64_t s = 0; s < pool.window; ++s) {
              const std::int64_t h = p * pool.stride + r - pool.padding;
              const std::int64_t w = q * pool.stride + s - pool.padding;
              if (h < 0 || h >= x[1] || w < 0 || w >= x[2]) continue;
              f(at(y, n, p, q, c), at(x, n, h, w, c), r * pool.window + s,
                static_cast<double>(length(p, x[1]) * length(q, x[2])));
            }
}

template <class F>
void each_case(std::span<const Pool> pools, F&& f) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Pool& pool : pools)
      for (const Shape& x : kImages) {
        CAPTURE(fmt::format("{} {} window {} stride {} padding {} ceil {} count {}", x,
                            name_of(dtype), pool.window, pool.stride, pool.padding, pool.ceil_mode,
                            pool.count_padding));
        f(dtype, pool, x);
      }
}

// x[i] = 7·i mod 41 - 20, [1, 5, 4, 2].
Tensor numbers(const Device& device) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(i * 7 % 41 - 20);
  return Tensor::from(values, {1, 5, 4, 2}, device);
}

}  // namespace

TEST_CASE("pooling: the number of windows is PyTorch's") {
  // size, window, stride, padding; windows without and with ceil_mode (0: refused). Made with
  // torch.nn.MaxPool2d(window, stride, padding, ceil_mode=…)(torch.zeros(1, 1, size, size)) of
  // PyTorch 1.13; AvgPool2d says the same.
  const std::int64_t table[][6] = {
      {1, 2, 2, 0, 0, 1},  {1, 3, 2, 0, 0, 0},    {1, 3, 2, 1, 1, 1},  {1, 2, 3, 1, 1, 1},
      {1, 3, 3, 1, 1, 1},  {1, 5, 3, 2, 1, 1},    {1, 2, 1, 1, 2, 2},  {1, 1, 2, 0, 1, 1},
      {1, 3, 5, 1, 1, 1},  {2, 2, 2, 0, 1, 1},    {2, 3, 2, 0, 0, 1},  {2, 3, 2, 1, 1, 2},
      {2, 2, 3, 1, 1, 1},  {2, 3, 3, 1, 1, 1},    {2, 5, 3, 2, 1, 2},  {2, 2, 1, 1, 3, 3},
      {2, 1, 2, 0, 1, 1},  {2, 3, 5, 1, 1, 1},    {3, 2, 2, 0, 1, 2},  {3, 3, 2, 0, 1, 1},
      {3, 3, 2, 1, 2, 2},  {3, 2, 3, 1, 2, 2},    {3, 3, 3, 1, 1, 2},  {3, 5, 3, 2, 1, 2},
      {3, 2, 1, 1, 4, 4},  {3, 1, 2, 0, 2, 2},    {3, 3, 5, 1, 1, 1},  {4, 2, 2, 0, 2, 2},
      {4, 3, 2, 0, 1, 2},  {4, 3, 2, 1, 2, 3},    {4, 2, 3, 1, 2, 2},  {4, 3, 3, 1, 2, 2},
      {4, 5, 3, 2, 2, 2},  {4, 2, 1, 1, 5, 5},    {4, 1, 2, 0, 2, 2},  {4, 3, 5, 1, 1, 1},
      {5, 2, 2, 0, 2, 3},  {5, 3, 2, 0, 2, 2},    {5, 3, 2, 1, 3, 3},  {5, 2, 3, 1, 2, 2},
      {5, 3, 3, 1, 2, 2},  {5, 5, 3, 2, 2, 3},    {5, 2, 1, 1, 6, 6},  {5, 1, 2, 0, 3, 3},
      {5, 3, 5, 1, 1, 2},  {7, 2, 2, 0, 3, 4},    {7, 3, 2, 0, 3, 3},  {7, 3, 2, 1, 4, 4},
      {7, 2, 3, 1, 3, 3},  {7, 3, 3, 1, 3, 3},    {7, 5, 3, 2, 3, 3},  {7, 2, 1, 1, 8, 8},
      {7, 1, 2, 0, 4, 4},  {7, 3, 5, 1, 2, 2},    {8, 2, 2, 0, 4, 4},  {8, 3, 2, 0, 3, 4},
      {8, 3, 2, 1, 4, 5},  {8, 2, 3, 1, 3, 3},    {8, 3, 3, 1, 3, 3},  {8, 5, 3, 2, 3, 4},
      {8, 2, 1, 1, 9, 9},  {8, 1, 2, 0, 4, 4},    {8, 3, 5, 1, 2, 2},  {13, 2, 2, 0, 6, 7},
      {13, 3, 2, 0, 6, 6}, {13, 3, 2, 1, 7, 7},   {13, 2, 3, 1, 5, 5}, {13, 3, 3, 1, 5, 5},
      {13, 5, 3, 2, 5, 5}, {13, 2, 1, 1, 14, 14}, {13, 1, 2, 0, 7, 7}, {13, 3, 5, 1, 3, 3}};
  for (const auto& [size, window, stride, padding, floor, ceil] : table) {
    const std::string what = fmt::format("{} {} {} {}", size, window, stride, padding);
    CAPTURE(what);
    CHECK(Pool{window, stride, padding, false}.positions(size) == floor);
    CHECK(Pool{window, stride, padding, true}.positions(size) == ceil);
  }
}

TEST_CASE("pooling: PyTorch's numbers in ceil_mode") {
  // From torch.nn.MaxPool2d and AvgPool2d(window, stride, padding, ceil_mode=True), PyTorch 1.13.
  struct Case {
    Pool pool;
    std::vector<double> largest, mean;
  };
  const Case cases[] = {
      {{3, 2, 1, true},
       {9, 16, 9, 16, -4, 3, 10, 17, 12, 19, 11, 18, 13, 20, 13, 20, 0, 7},
       {-2.444444, 0.666667, -3.333333, 1.333333, -3.833333, -1.5, -2.333333, 2.333333, -3.0, 4.0,
        -1.333333, 2.166667, -0.666667, 2.444444, -0.666667, 4.0, -2.5, -0.166667}},
      {{3, 2, 0, true},
       {10, 17, 11, 18, 13, 20, 12, 19},
       {-4.666667, 2.333333, -4.166667, 2.833333, -2.0, 5.0, -1.5, 5.5}},
      {{2, 3, 1, true},
       {-20, -13, 8, 15, 10, 17, 12, 19},
       {-5.0, -3.25, -2.75, 0.75, -1.5, 2.0, 1.25, 8.25}}};
  const Device device = cpu_device();
  const Tensor x = numbers(device);
  for (const Case& c : cases) {
    const Shape shape = pooled(c.pool, x.shape());
    const Tensor y = Tensor::empty(shape, Dtype::f64, device);
    const Tensor winners = Tensor::empty(shape, Dtype::u8, device);
    device.backend().max_pool(c.pool, x, y, winners);
    check_close(y, c.largest, 0);
    device.backend().average_pool(c.pool, x, y);
    check_close(y, c.mean, 1e-6);
  }
}

TEST_CASE("pooling: PyTorch's means that do not count the padding") {
  // From torch.nn.AvgPool2d(3, stride, 1, ceil_mode=…, count_include_pad=False), PyTorch 1.13.
  const Device device = cpu_device();
  const Tensor x = numbers(device);
  const auto check = [&](const Pool& pool, const std::vector<double>& mean) {
    const Tensor y = Tensor::empty(pooled(pool, x.shape()), Dtype::f64, device);
    device.backend().average_pool(pool, x, y);
    check_close(y, mean, 1e-6);
  };
  check({3, 1, 1, false, false},
        {-5.5,      1.5,      -5.333333, 1.666667, -5.0,      2.0,      -8.25,     -1.25,
         -4.833333, 2.166667, -4.666667, 2.333333, -4.333333, 2.666667, -4.166667, 2.833333,
         -3.5,      3.5,      -3.333333, 3.666667, -3.0,      4.0,      -2.833333, 4.166667,
         -2.166667, 4.833333, -2.0,      5.0,      -1.666667, 5.333333, -1.5,      5.5,
         -1.5,      5.5,      -1.333333, 5.666667, -1.0,      6.0,      -4.25,     2.75});
  check({3, 2, 1, true, false}, {-5.5, 1.5, -5.0, 2.0, -11.5, -4.5, -3.5, 3.5, -3.0, 4.0, -2.666667,
                                 4.333333, -1.5, 5.5, -1.0, 6.0, -7.5, -0.5});
}

TEST_CASE("pooling: maxima, their places and their gradient") {
  const Device device = cpu_device(2);
  each_case(kPools, [&](Dtype dtype, const Pool& pool, const Shape& shape) {
    const Tensor x = random_tensor(shape, 1, dtype, device);
    const Tensor y = random_tensor(pooled(pool, shape), 2, dtype, device), dy = y.clone();
    const Tensor dx = random_tensor(shape, 3, dtype, device);
    const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, device);
    const auto vx = host(x), vdy = host(dy), before = host(dx);
    std::vector<double> largest(vdy.size(), -2);
    std::vector<std::size_t> from(vdy.size());
    std::vector<std::uint8_t> places(vdy.size());
    each_pixel(pool, shape, [&](std::size_t i, std::size_t j, std::int64_t place, double) {
      if (vx[j] <= largest[i]) return;
      largest[i] = vx[j];
      from[i] = j;
      places[i] = static_cast<std::uint8_t>(place);
    });
    std::vector<double> gradient(vx.size());
    for (std::size_t i = 0; i < vdy.size(); ++i) gradient[from[i]] += vdy[i];

    device.backend().max_pool(pool, x, y, winners);
    check_close(y, largest, 0);
    CHECK(winners.to_host<std::uint8_t>() == places);
    device.backend().max_pool_gradient(pool, winners, dy, dx, true);
    auto sum = before;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    check_close(dx, sum, 1e-5);
    device.backend().max_pool_gradient(pool, winners, dy, dx, false);
    check_close(dx, gradient, 1e-5);
  });
}

TEST_CASE("pooling: means and their gradient") {
  const Device device = cpu_device(2);
  const auto check = [&](Dtype dtype, const Pool& pool, const Shape& shape) {
    const Tensor x = random_tensor(shape, 1, dtype, device);
    const Tensor y = random_tensor(pooled(pool, shape), 2, dtype, device), dy = y.clone();
    const Tensor dx = random_tensor(shape, 3, dtype, device);
    const auto vx = host(x), vdy = host(dy);
    auto sum = host(dx);
    std::vector<double> mean(vdy.size()), gradient(vx.size());
    each_pixel(pool, shape, [&](std::size_t i, std::size_t j, std::int64_t, double pixels) {
      mean[i] += vx[j] / pixels;
      gradient[j] += vdy[i] / pixels;
      sum[j] += vdy[i] / pixels;
    });
    device.backend().average_pool(pool, x, y);
    check_close(y, mean, 1e-5);
    device.backend().average_pool_gradient(pool, dy, dx, true);
    check_close(dx, sum, 1e-5);
    device.backend().average_pool_gradient(pool, dy, dx, false);
    check_close(dx, gradient, 1e-5);
  };
  each_case(kPools, check);
  each_case(kNotCounting, check);
}

TEST_CASE("pooling: means over any number of windows, as in PyTorch") {
  const Device device = cpu_device(2);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& sides : {std::array<std::int64_t, 4>{6, 6, 6, 6},
                              {1, 1, 6, 6},
                              {1, 3, 6, 6},
                              {5, 4, 6, 6},
                              {13, 7, 6, 6},
                              {12, 18, 6, 6},
                              {9, 7, 1, 1},
                              {37, 29, 5, 8}}) {
      const std::int64_t h = sides[0], w = sides[1], p = sides[2], q = sides[3];
      CAPTURE(fmt::format("{} x {} to {} x {}", h, w, p, q));
      const Shape shape{3, h, w, 5}, pooled_shape{3, p, q, 5};
      const Tensor x = random_tensor(shape, 1, dtype, device);
      const Tensor y = random_tensor(pooled_shape, 2, dtype, device), dy = y.clone();
      const Tensor dx = random_tensor(shape, 3, dtype, device);
      const auto vx = host(x), vdy = host(dy);
      auto sum = host(dx);
      std::vector<double> mean(vdy.size()), gradient(vx.size());
      // torch.nn.AdaptiveAvgPool2d: from floor(i·size/windows) to ceil((i+1)·size/windows).
      const auto begin = [](std::int64_t i, std::int64_t windows, std::int64_t size) {
        return static_cast<std::int64_t>(
            std::floor(static_cast<double>(i * size) / static_cast<double>(windows)));
      };
      const auto end = [](std::int64_t i, std::int64_t windows, std::int64_t size) {
        return static_cast<std::int64_t>(
            std::ceil(static_cast<double>((i + 1) * size) / static_cast<double>(windows)));
      };
      for (std::int64_t n = 0; n < 3; ++n)
        for (std::int64_t i = 0; i < p; ++i)
          for (std::int64_t j = 0; j < q; ++j)
            for (std::int64_t r = begin(i, p, h); r < end(i, p, h); ++r)
              for (std::int64_t s = begin(j, q, w); s < end(j, q, w); ++s)
                for (std::int64_t c = 0; c < 5; ++c) {
                  const auto to = static_cast<std::size_t>(((n * p + i) * q + j) * 5 + c);
                  const auto from = static_cast<std::size_t>(((n * h + r) * w + s) * 5 + c);
                  const auto pixels = static_cast<double>((end(i, p, h) - begin(i, p, h)) *
                                                          (end(j, q, w) - begin(j, q, w)));
                  mean[to] += vx[from] / pixels;
                  gradient[from] += vdy[to] / pixels;
                  sum[from] += vdy[to] / pixels;
                }
      device.backend().adaptive_average_pool(x, y);
      check_close(y, mean, 1e-5);
      device.backend().adaptive_average_pool_gradient(dy, dx, true);
      check_close(dx, sum, 1e-5);
      device.backend().adaptive_average_pool_gradient(dy, dx, false);
      check_close(dx, gradient, 1e-5);
    }
}

TEST_CASE("pooling: the mean of whole images") {
  const Device device = cpu_device(2);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 7, 5, 19}, Shape{40, 8, 9, 33}}) {
      const Tensor x = random_tensor(shape, 1, dtype, device);
      const Tensor y = random_tensor({shape[0], shape[3]}, 2, dtype, device), dy = y.clone();
      const Tensor dx = random_tensor(shape, 3, dtype, device);
      const auto vx = host(x), vdy = host(dy);
      auto sum = host(dx);
      const auto pixels = static_cast<double>(shape[1] * shape[2]);
      std::vector<double> mean(vdy.size()), gradient(vx.size());
      for (std::size_t j = 0; j < vx.size(); ++j) {
        const auto c = static_cast<std::size_t>(shape[3]);
        const std::size_t image = j / static_cast<std::size_t>(shape[1] * shape[2] * shape[3]);
        mean[image * c + j % c] += vx[j] / pixels;
        gradient[j] = vdy[image * c + j % c] / pixels;
        sum[j] += gradient[j];
      }
      device.backend().global_average_pool(x, y);
      check_close(y, mean, 1e-5);
      device.backend().global_average_pool_gradient(dy, dx, true);
      check_close(dx, sum, 1e-5);
      device.backend().global_average_pool_gradient(dy, dx, false);
      check_close(dx, gradient, 1e-5);
    }
}

TEST_CASE("pooling: the first of equals wins, -infinity can win, and NaN beats all") {
  const Device device = cpu_device();
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t channels : {1, 37}) {
    const auto result = [&](const std::vector<float>& pixels) {
      std::vector<float> values;
      for (float pixel : pixels)
        values.insert(values.end(), static_cast<std::size_t>(channels), pixel);
      const Tensor x = Tensor::from(values, {1, 2, 2, channels}, device);
      const Tensor y = Tensor::empty({1, 1, 1, channels}, Dtype::f32, device);
      const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, device);
      device.backend().max_pool({}, x, y, winners);
      const auto places = winners.to_host<std::uint8_t>();
      for (const auto place : places) CHECK(place == places[0]);
      return std::pair<float, int>(y.to_host<float>().back(), places[0]);
    };
    CHECK(result({1, 5, 5, 2}) == std::pair(5.0F, 1));
    CHECK(result({-infinity, -infinity, -infinity, -infinity}) == std::pair(-infinity, 0));
    CHECK(std::isnan(result({1, nan, 7, 2}).first));
    CHECK(result({1, nan, 7, 2}).second == 1);
    CHECK(result({nan, 1, 7, 2}).second == 0);
    CHECK(result({nan, 1, nan, 2}).second == 2);  // as in PyTorch
  }
}

TEST_CASE("pooling: the bits do not depend on the number of threads") {
  const auto result = [](int threads) {
    const Device device = cpu_device(threads);
    Backend& backend = device.backend();
    const Pool pool{3, 2, 1, true};
    const Tensor x = random_tensor({5, 37, 29, 70}, 1, Dtype::f32, device), dx = x.clone();
    const Tensor y = random_tensor(pooled(pool, x.shape()), 2, Dtype::f32, device);
    const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, device);
    const Tensor means = Tensor::empty({5, 70}, Dtype::f32, device);
    std::vector<double> all;
    const auto keep = [&](const Tensor& t) {
      const auto values = host(t);
      all.insert(all.end(), values.begin(), values.end());
    };
    backend.max_pool(pool, x, y, winners);
    keep(y);
    backend.max_pool_gradient(pool, winners, y, dx, true);
    keep(dx);
    backend.average_pool(pool, x, y);
    keep(y);
    backend.average_pool_gradient(pool, y, dx, true);
    keep(dx);
    const Tensor shares = Tensor::empty({5, 6, 6, 70}, Dtype::f32, device);
    backend.adaptive_average_pool(x, shares);
    keep(shares);
    backend.adaptive_average_pool_gradient(shares, dx, true);
    keep(dx);
    backend.global_average_pool(x, means);
    keep(means);
    backend.global_average_pool_gradient(means, dx, true);
    keep(dx);
    return all;
  };
  const auto one = result(1);
  CHECK(result(2) == one);
  CHECK(result(5) == one);
}
