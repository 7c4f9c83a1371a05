// Compares every call of the CPU backend with a slow, obvious loop, for different numbers of
// threads.
#include "tensor/backend.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Large enough for several tiles, and odd.
constexpr std::int64_t kMany = 100'003;

std::vector<double> naive_product(const Matmul& p) {
  const auto a = host(p.a), b = host(p.b);
  auto c = host(p.c);
  const std::int64_t m = p.c.size(0), n = p.c.size(1), k = p.a.size(p.transpose_a ? 0 : 1);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = p.accumulate ? c[static_cast<std::size_t>(i * n + j)] : 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += a[static_cast<std::size_t>(p.transpose_a ? l * m + i : i * k + l)] *
               b[static_cast<std::size_t>(p.transpose_b ? j * k + l : l * n + j)];
      c[static_cast<std::size_t>(i * n + j)] = sum;
    }
  return c;
}

Matmul make_product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb,
                    bool accumulate, Dtype dtype, const Device& device) {
  return {.a = random_tensor(ta ? Shape{k, m} : Shape{m, k}, 1, dtype, device),
          .transpose_a = ta,
          .b = random_tensor(tb ? Shape{n, k} : Shape{k, n}, 2, dtype, device),
          .transpose_b = tb,
          .c = random_tensor({m, n}, 3, dtype, device),
          .accumulate = accumulate};
}

}  // namespace

TEST_CASE("backend: matrix product in all transpose forms, sizes and dtypes") {
  const Device device = cpu_device(2);
  const Shape sizes[] = {{1, 1, 1},    {1, 17, 3},     {5, 1, 9},     {16, 16, 16}, {100, 10, 50},
                         {33, 300, 7}, {300, 33, 129}, {257, 513, 5}, {700, 20, 10}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Shape& s : sizes)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const bool accumulate : {false, true}) {
            CAPTURE(fmt::format("{} {} {} {} {}", s, name_of(dtype), ta, tb, accumulate));
            const Matmul p = make_product(s[0], s[1], s[2], ta, tb, accumulate, dtype, device);
            const auto expected = naive_product(p);
            device.backend().matmul(p);
            check_close(p.c, expected, tolerance_of(dtype));
          }
}

TEST_CASE("backend: products with empty sums or empty outputs") {
  const Device device = cpu_device(2);
  const Matmul none = make_product(3, 4, 0, false, true, false, Dtype::f32, device);
  device.backend().matmul(none);
  check_close(none.c, std::vector<double>(12, 0.0), 0);
  const Matmul kept = make_product(3, 4, 0, false, false, true, Dtype::f32, device);
  const auto before = host(kept.c);
  device.backend().matmul(kept);
  check_close(kept.c, before, 0);
  device.backend().matmul(make_product(0, 4, 5, false, false, false, Dtype::f32, device));
}

TEST_CASE("backend: several products in one call") {
  const Device device = cpu_device(2);
  const std::vector<Matmul> products = {
      make_product(100, 500, 20, false, true, false, Dtype::f32, device),
      make_product(500, 30, 10, true, false, false, Dtype::f32, device),
      make_product(3, 2, 5, false, false, true, Dtype::f32, device)};
  std::vector<std::vector<double>> expected;
  for (const Matmul& p : products) expected.push_back(naive_product(p));
  device.backend().matmul(products);
  for (std::size_t i = 0; i < products.size(); ++i) check_close(products[i].c, expected[i], 1e-4);
}

TEST_CASE("backend: a product whose shapes do not fit is refused") {
  const Device device = cpu_device();
  Matmul p = make_product(2, 3, 4, false, false, false, Dtype::f32, device);
  p.transpose_b = true;
  CHECK_THROWS_AS(device.backend().matmul(p), std::logic_error);
}

TEST_CASE("backend: element-wise calls") {
  const Device device = cpu_device(2);
  Backend& backend = device.backend();
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{17}, kMany}) {
      CAPTURE(count);
      const Tensor a = random_tensor({count}, 1, dtype, device);
      const Tensor b = random_tensor({count}, 2, dtype, device);
      const Tensor y = random_tensor({count}, 3, dtype, device);
      const auto va = host(a), vb = host(b), vy = host(y);
      const auto expect = [&](auto f) {
        std::vector<double> expected(va.size());
        for (std::size_t i = 0; i < va.size(); ++i) expected[i] = f(i);
        return expected;
      };

      backend.relu_gradient(a, b, y, true);
      check_close(y, expect([&](auto i) { return vy[i] + (va[i] > 0 ? vb[i] : 0); }), 1e-6);
      backend.relu_gradient(a, b, y, false);
      check_close(y, expect([&](auto i) { return va[i] > 0 ? vb[i] : 0; }), 0);
      backend.relu(a, y);
      check_close(y, expect([&](auto i) { return std::max(va[i], 0.0); }), 0);
      backend.add(a, b, y);
      check_close(y, expect([&](auto i) { return va[i] + vb[i]; }), 1e-6);
      backend.add(y, b, y);
      check_close(y, expect([&](auto i) { return va[i] + 2 * vb[i]; }), 1e-6);
      backend.weighted_sum(3, a, -0.5, b, y);
      check_close(y, expect([&](auto i) { return 3 * va[i] - 0.5 * vb[i]; }), 1e-6);
      backend.weighted_sum(0.25, a, 1, y, y);  // axpy
      check_close(y, expect([&](auto i) { return 3.25 * va[i] - 0.5 * vb[i]; }), 1e-6);
      backend.weighted_sum(-2, y, 0, y, y);  // scale
      check_close(y, expect([&](auto i) { return vb[i] - 6.5 * va[i]; }), 1e-6);
      backend.fill_zero(y);
      check_close(y, expect([&](auto) { return 0.0; }), 0);
      backend.copy(a, y);
      check_close(y, va, 0);
    }
}

TEST_CASE("backend: ReLU does not hide NaN, forward and backward") {
  const Device device = cpu_device();
  const float nan = std::nanf("");
  const Tensor x = Tensor::from(std::vector<float>{nan, -1, 2}, {3}, device);
  const Tensor y = x.clone(), dx = x.clone();
  device.backend().relu(x, y);
  CHECK(std::isnan(host(y)[0]));
  CHECK(host(y)[1] == 0);
  const Tensor dy = Tensor::from(std::vector<float>{5, 6, nan}, {3}, device);
  device.backend().relu_gradient(y, dy, dx, false);
  CHECK(host(dx)[0] == 5);
  CHECK(host(dx)[1] == 0);
  CHECK(std::isnan(host(dx)[2]));
}

TEST_CASE("backend: bias and sums over rows") {
  const Device device = cpu_device(2);
  Backend& backend = device.backend();
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{20'011, 7}, Shape{7, 20'011}}) {
      CAPTURE(fmt::format("{}", shape));
      const Tensor x = random_tensor(shape, 1, dtype, device);
      const Tensor bias = random_tensor({shape[1]}, 2, dtype, device);
      const auto vx = host(x), vb = host(bias);
      std::vector<double> sums(vb.size()), with_bias = vx;
      for (std::size_t i = 0; i < vx.size(); ++i) {
        sums[i % vb.size()] += vx[i];
        with_bias[i] += vb[i % vb.size()];
      }
      const Tensor out = bias.clone();
      backend.sum_rows(x, out, false);
      check_close(out, sums, dtype == Dtype::f64 ? 1e-10 : 1e-2);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] *= 2;
      backend.sum_rows(x, out, true);
      check_close(out, sums, dtype == Dtype::f64 ? 1e-10 : 2e-2);
      backend.add_bias(bias, x);
      check_close(x, with_bias, 1e-6);
    }
}

TEST_CASE("backend: dropout keeps the right share, scaled, and the gradient matches") {
  const Device device = cpu_device(2);
  const Tensor x = random_tensor({kMany}, 1, Dtype::f32, device);
  const Tensor y = Tensor::empty({kMany}, Dtype::f32, device);
  const Tensor again = Tensor::zeros({kMany}, Dtype::f32, device);
  device.backend().dropout(x, 0.8, {Random(5)}, y, false);
  device.backend().dropout(x, 0.8, {Random(5)}, again, true);
  const auto vx = host(x), vy = host(y);
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < vx.size(); ++i) {
    if (vy[i] == 0) continue;
    ++kept;
    REQUIRE(vy[i] == doctest::Approx(vx[i] / 0.8));
  }
  CHECK(static_cast<double>(kept) / kMany == doctest::Approx(0.8).epsilon(0.01));
  check_close(again, vy, 0);
}

TEST_CASE("backend: softmax cross-entropy with and without smoothing, also for huge logits") {
  const Device device = cpu_device(2);
  for (const double smoothing : {0.0, 0.1})
    for (const double size : {1.0, 500.0}) {
      const std::int64_t rows = 4000, classes = 11;  // several tiles
      auto values = random_values(rows * classes, 1);
      std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
      for (std::size_t r = 0; r < labels.size(); ++r)
        labels[r] = static_cast<std::int32_t>(r * 7 % 11);
      for (double& v : values) v *= size;

      double loss = 0;
      std::vector<double> softmax(values.size()), gradient(values.size());
      for (std::size_t r = 0; r < labels.size(); ++r) {
        const double* row = &values[r * 11];
        const double top = *std::max_element(row, row + 11);
        double sum = 0;
        for (std::size_t c = 0; c < 11; ++c) sum += std::exp(row[c] - top);
        for (std::size_t c = 0; c < 11; ++c) {
          const double target =
              smoothing / 11 + (static_cast<std::int32_t>(c) == labels[r] ? 1 - smoothing : 0);
          const double log_p = row[c] - top - std::log(sum);
          loss -= target * log_p / 8000;
          softmax[r * 11 + c] = std::exp(log_p);
          gradient[r * 11 + c] = 3 * (std::exp(log_p) - target) / 8000;
        }
      }

      const Tensor x = Tensor::from(values, {rows, classes}, device);
      const Tensor y = Tensor::from(labels, {rows}, device);
      const Tensor p = Tensor::empty({rows, classes}, Dtype::f64, device);
      const Tensor out = Tensor::empty({}, Dtype::f64, device);
      device.backend().softmax_cross_entropy(x, y, smoothing, 1.0 / 8000, p, out);
      CHECK(out.item() == doctest::Approx(loss).epsilon(1e-12));
      check_close(p, softmax, 1e-12);
      const Tensor three = Tensor::from(std::vector<double>{3}, {}, device);
      device.backend().softmax_cross_entropy_gradient(p, y, smoothing, 1.0 / 8000, three, x, false);
      check_close(x, gradient, 1e-12);
    }
}

TEST_CASE("backend: an invalid label is refused") {
  const Device device = cpu_device();
  const Tensor x = random_tensor({1, 3}, 1, Dtype::f32, device), p = x.clone();
  const Tensor loss = Tensor::empty({}, Dtype::f32, device);
  for (const std::int32_t label : {-1, 3}) {
    const Tensor y = Tensor::from(std::vector<std::int32_t>{label}, {1}, device);
    CHECK_THROWS_AS(device.backend().softmax_cross_entropy(x, y, 0, 1, p, loss), std::logic_error);
  }
}

TEST_CASE("backend: counting correct predictions, the first of equals wins") {
  const Device device = cpu_device();
  const Tensor logits = Tensor::from(std::vector<float>{1, 5, 2, 7, 7, 0, 0, 0, 0}, {3, 3}, device);
  const Tensor labels = Tensor::from(std::vector<std::int32_t>{1, 1, 0}, {3}, device);
  CHECK(device.backend().count_correct(logits, labels) == 2);
}

TEST_CASE("backend: the bits do not depend on the number of threads") {
  const auto result = [](int threads) {
    const Device device = cpu_device(threads);
    Backend& backend = device.backend();
    std::vector<double> all;
    const auto keep = [&](const Tensor& x) {
      const auto values = host(x);
      all.insert(all.end(), values.begin(), values.end());
    };
    for (const bool t : {false, true}) {
      const Matmul p = make_product(301, 402, 203, t, !t, false, Dtype::f32, device);
      backend.matmul(p);
      keep(p.c);
    }
    const Tensor x = random_tensor({5000, 40}, 1, Dtype::f32, device);
    const Tensor sums = Tensor::empty({40}, Dtype::f32, device);
    backend.sum_rows(x, sums, false);
    keep(sums);
    const Tensor w = random_tensor({200'000}, 2, Dtype::f32, device), m = w.clone();
    backend.sgd({.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}, x.reshape({200'000}), m, w,
                {});
    keep(w);
    backend.dropout(w, 0.5, {Random(1)}, m, false);
    keep(m);
    return all;
  };
  const auto one = result(1);
  CHECK(result(2) == one);
  CHECK(result(5) == one);
}
