// Compares the CPU's convolutions with the obvious loop over all products, in all geometries.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tensor/cpu/winograd.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

struct Case {
  Shape x, filter;
  Convolution convolution = {};

  Shape y() const {
    return {x[0], convolution.rows(x[1], filter[1]), convolution.columns(x[2], filter[2]),
            filter[0]};
  }
};

// Calls f(x index, filter index, y index, count) for all products of the convolution: `count` of
// them at a time, with the same y and neighbouring x and filter elements.
template <class F>
void each_products(const Case& c, F&& f) {
  const Convolution& o = c.convolution;
  const std::int64_t height = c.x[1], width = c.x[2], channels = c.x[3];
  const std::int64_t filters = c.filter[0], rows = c.filter[1], columns = c.filter[2],
                     depth = c.filter[3], group_k = filters / o.groups;
  const Shape y = c.y();
  std::int64_t pixel = 0;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t p = 0; p < y[1]; ++p)
      for (std::int64_t q = 0; q < y[2]; ++q, ++pixel)
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t s = 0; s < columns; ++s) {
            const std::int64_t h = p * o.stride.height + r * o.dilation - o.padding.height;
            const std::int64_t w = q * o.stride.width + s * o.dilation - o.padding.width;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            for (std::int64_t k = 0; k < filters; ++k)
              f(((n * height + h) * width + w) * channels + k / group_k * depth,
                ((k * rows + r) * columns + s) * depth, pixel * filters + k, depth);
          }
}

std::vector<double> plus(std::vector<double> a, const std::vector<double>& b) {
  std::ranges::transform(a, b, a.begin(), std::plus());
  return a;
}

// Within the tolerance, relative to the largest value expected.
void check_near(const Tensor& x, const std::vector<double>& expected, double tolerance) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  check_close(x, expected, tolerance * largest);
}

// Winograd's transforms cost some digits, see docs/convolution.md.
double tolerance(Dtype dtype) { return dtype == Dtype::f64 ? 1e-12 : 2e-5; }

void check(const Case& c, Dtype dtype, int threads) {
  CAPTURE(fmt::format("x {}, filter {}, stride {}, padding {}, dilation {}, {} groups, {}", c.x,
                      c.filter, c.convolution.stride, c.convolution.padding, c.convolution.dilation,
                      c.convolution.groups, name_of(dtype)));
  const Device device = cpu_device(threads);
  Backend& backend = device.backend();
  const Tensor x = random_tensor(c.x, 1, dtype, device);
  const Tensor filter = random_tensor(c.filter, 2, dtype, device);
  const Tensor bias = random_tensor({c.filter[0]}, 3, dtype, device);
  const Tensor dy = random_tensor(c.y(), 4, dtype, device);
  const auto vx = host(x), vf = host(filter), vb = host(bias), vdy = host(dy);

  std::vector<double> y_sum(vdy.size()), dx_sum(vx.size()), df_sum(vf.size());
  each_products(c, [&](std::int64_t at_x, std::int64_t at_f, std::int64_t at_y, std::int64_t n) {
    const double *px = vx.data() + at_x, *pf = vf.data() + at_f, dy_value = vdy.data()[at_y];
    double *pdx = dx_sum.data() + at_x, *pdf = df_sum.data() + at_f, sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += px[i] * pf[i];
      pdx[i] += dy_value * pf[i];
      pdf[i] += px[i] * dy_value;
    }
    y_sum.data()[at_y] += sum;
  });
  for (const bool with_bias : {false, true}) {
    std::vector<double> expected = y_sum;
    for (std::size_t i = 0; with_bias && i < expected.size(); ++i) expected[i] += vb[i % vb.size()];
    const Tensor y = Tensor::empty(c.y(), dtype, device);
    backend.conv2d(c.convolution, x, filter, with_bias ? bias : Tensor(), false, y);
    check_near(y, expected, tolerance(dtype));
  }
  for (const bool accumulate : {false, true}) {
    const Tensor dx = random_tensor(c.x, 5, dtype, device);
    const Tensor df = random_tensor(c.filter, 6, dtype, device);
    const auto dx_expected = accumulate ? plus(host(dx), dx_sum) : dx_sum;
    const auto df_expected = accumulate ? plus(host(df), df_sum) : df_sum;
    backend.conv2d_data_gradient(c.convolution, dy, filter, dx, accumulate);
    check_near(dx, dx_expected, tolerance(dtype));
    backend.conv2d_filter_gradient(c.convolution, x, dy, df, accumulate);
    check_near(df, df_expected, tolerance(dtype));
  }
}

}  // namespace

TEST_CASE("convolution: windows, strides, paddings, dilations and groups") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t window : {1, 2, 3, 5})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t padding : {0, 1, 2, 5})
          for (const std::int64_t dilation : {1, 2})
            check({{2, 9, 10, 6}, {4, window, window, 3}, {stride, padding, dilation, 2}}, dtype,
                  2);
}

TEST_CASE("convolution: windows, strides and paddings that differ in height and width") {
  const auto one = [](HeightWidth window, HeightWidth stride, HeightWidth padding,
                      std::int64_t channels) {
    return Case{{2, 11, 9, channels},
                {20, window.height, window.width, channels},
                {.stride = stride, .padding = padding}};
  };
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t channels : {3, 16}) {
      check(one({1, 7}, 1, {0, 3}, channels), dtype, 2);
      check(one({7, 1}, 1, {3, 0}, channels), dtype, 2);
      check(one({1, 3}, 1, {0, 1}, channels), dtype, 2);
      check(one({3, 1}, 1, {1, 0}, channels), dtype, 2);
      check(one({3, 3}, 1, {0, 2}, channels), dtype, 2);
      check(one({3, 3}, {1, 2}, 1, channels), dtype, 2);
      check(one({5, 2}, {3, 1}, {1, 2}, channels), dtype, 2);
      check(one({2, 4}, {2, 3}, {0, 3}, channels), dtype, 2);
    }
}

TEST_CASE("convolution: channels that do and do not fill vectors") {
  for (const std::int64_t channels : {1, 3, 8, 16, 33})
    for (const std::int64_t filters : {1, 7, 12, 16, 40})
      for (const std::int64_t window : {1, 3, 5})
        check({{3, 7, 6, channels}, {filters, window, window, channels}, {1, window / 2}},
              Dtype::f32, 2);
}

TEST_CASE("convolution: the shapes of the nets, scaled down") {
  check({{2, 31, 31, 3}, {24, 11, 11, 3}, {4, 2}}, Dtype::f32, 2);  // AlexNet's first
  check({{2, 27, 27, 3}, {16, 7, 7, 3}, {2, 3}}, Dtype::f32, 2);    // ResNet's first
  check({{1, 13, 13, 40}, {20, 3, 3, 40}, {1, 1}}, Dtype::f32, 2);  // deep enough for two blocks
  check({{2, 14, 14, 24}, {100, 3, 3, 24}, {2, 1}}, Dtype::f32, 2);
  check({{2, 15, 13, 64}, {70, 1, 1, 64}, {2, 0}}, Dtype::f32, 2);  // a shortcut
  check({{6, 6, 6, 300}, {80, 1, 1, 300}}, Dtype::f32, 2);          // several tiles
  check({{29, 6, 6, 20}, {20, 1, 1, 20}}, Dtype::f32, 2);           // pixels in two parts
  check({{1, 12, 11, 8}, {8, 3, 2, 8}, {1, 1}}, Dtype::f32, 2);     // not square
}

TEST_CASE("convolution: the edge cases of Winograd's algorithm") {
  const auto check_winograd = [](const Case& c, Dtype dtype) {
    REQUIRE(winograd::wins(c.convolution, c.x, c.filter));
    check(c, dtype, 2);
  };
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    check_winograd({{1, 9, 10, 260}, {20, 3, 3, 260}, {1, 1}}, dtype);     // deeper than a block
    check_winograd({{1, 9, 10, 20}, {260, 3, 3, 20}, {1, 1}}, dtype);      // and so backwards
    check_winograd({{2, 8, 9, 28}, {33, 3, 3, 28}, {1, 0}}, dtype);        // no padding
    check_winograd({{2, 7, 6, 24}, {20, 3, 3, 24}, {1, 2}}, dtype);        // all that can be
    check_winograd({{1, 9, 9, 96}, {60, 3, 3, 32}, {1, 1, 1, 3}}, dtype);  // groups
    check_winograd({{2, 12, 13, 20}, {25, 5, 5, 20}, {1, 2}}, dtype);      // 5x5, odd sizes
    check_winograd({{1, 10, 10, 32}, {24, 5, 5, 16}, {1, 1, 1, 2}}, dtype);
  }
  check_winograd({{1, 40, 41, 10}, {70, 3, 3, 10}, {1, 1}}, Dtype::f32);  // many tiles
  check_winograd({{1, 42, 43, 4}, {500, 3, 3, 4}, {1, 1}},
                 Dtype::f64);  // more than are done at once
}

TEST_CASE("convolution: the filters' gradient keeps its precision in large batches") {
  // Root mean square error of f32 against f64, relative to the gradient.
  const auto error = [](const Case& c) {
    const Device device = cpu_device(2);
    const Tensor x = random_tensor(c.x, 1, Dtype::f32, device);
    const Tensor dy = random_tensor(c.y(), 2, Dtype::f32, device);
    const Tensor gradient = Tensor::empty(c.filter, Dtype::f32, device);
    const Tensor exact = Tensor::empty(c.filter, Dtype::f64, device);
    Backend& backend = device.backend();
    backend.conv2d_filter_gradient(c.convolution, x, dy, gradient, false);
    backend.conv2d_filter_gradient(c.convolution, Tensor::from(host(x), c.x, device),
                                   Tensor::from(host(dy), c.y(), device), exact, false);
    double errors = 0, squares = 0;
    const auto values = host(gradient), expected = host(exact);
    for (std::size_t i = 0; i < values.size(); ++i) {
      errors += (values[i] - expected[i]) * (values[i] - expected[i]);
      squares += expected[i] * expected[i];
    }
    return std::sqrt(errors / squares);
  };
  // In one long sum each, these were 3.6e-5, 1.6e-5 and 1.0e-6.
  CHECK(error({{100, 32, 32, 16}, {16, 5, 5, 16}, {1, 2}}) < 5e-6);
  CHECK(error({{100, 32, 32, 16}, {16, 3, 3, 16}, {1, 1}}) < 5e-6);
  CHECK(error({{100, 32, 32, 3}, {16, 5, 5, 3}, {1, 2}}) < 5e-7);  // not by Winograd's way
}

TEST_CASE("convolution: windows larger than the image, images of one pixel, no images") {
  check({{2, 1, 1, 4}, {4, 3, 3, 4}, {1, 1}}, Dtype::f32, 2);
  check({{2, 2, 3, 4}, {4, 5, 5, 4}, {1, 2}}, Dtype::f32, 2);
  check({{1, 4, 4, 2}, {2, 1, 1, 2}, {5, 0}}, Dtype::f32, 2);  // most pixels are never read
  check({{0, 4, 4, 2}, {2, 3, 3, 2}, {1, 1}}, Dtype::f32, 2);
}

TEST_CASE("convolution: the bits do not depend on the number of threads") {
  for (const Case& c : {Case{{4, 20, 20, 16}, {32, 3, 3, 16}, {1, 1}},
                        Case{{4, 20, 20, 16}, {32, 3, 3, 16}, {2, 1}},
                        Case{{4, 20, 20, 16}, {32, 5, 5, 16}, {1, 2}},
                        Case{{20, 32, 32, 12}, {16, 5, 5, 12}, {1, 2}}}) {
    const auto all = [&](int threads) {
      const Device device = cpu_device(threads);
      const Tensor x = random_tensor(c.x, 1, Dtype::f32, device);
      const Tensor filter = random_tensor(c.filter, 2, Dtype::f32, device);
      const Tensor y = Tensor::empty(c.y(), Dtype::f32, device);
      const Tensor dx = Tensor::empty(c.x, Dtype::f32, device);
      const Tensor df = Tensor::empty(c.filter, Dtype::f32, device);
      device.backend().conv2d(c.convolution, x, filter, Tensor(), false, y);
      device.backend().conv2d_data_gradient(c.convolution, y, filter, dx, false);
      device.backend().conv2d_filter_gradient(c.convolution, x, y, df, false);
      return std::array{host(y), host(dx), host(df)};
    };
    const auto one = all(1);
    CHECK(all(2) == one);
    CHECK(all(5) == one);
  }
}
