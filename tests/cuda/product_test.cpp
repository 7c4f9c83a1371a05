// The GPU's matrix products and linear layers compared with the CPU's, in every precision.
#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Of a sum of k products of numbers between -1 and 1.
double typical(std::int64_t k) { return std::sqrt(static_cast<double>(k)) / 3; }

// Of products that are stored as f32.
double tolerance_of_f32(Precision precision) {
  return precision == Precision::bf16 ? kF32OfBf16 : tolerance_of_products(precision);
}

std::vector<Shape> sizes() {  // m, n, k
  std::vector<Shape> all = {{1, 1, 1},      {1, 17, 3},   {5, 1, 9}, {16, 16, 16},
                            {64, 64, 64},   {33, 300, 7}, {7, 5, 1}, {300, 33, 129},
                            {257, 513, 5},  {0, 4, 5},    {4, 0, 5}, {100, 10, 500},
                            {1, 1000, 2048}};
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    const auto size = [&] { return static_cast<std::int64_t>(1 + random.below(400)); };
    const std::int64_t m = size(), n = size(), k = size();
    all.push_back({m, n, k});
  }
  return all;
}

void check_product(const Sides& sides, const Shape& s, bool ta, bool tb, bool accumulate,
                   Dtype result) {
  CAPTURE(fmt::format("{} {} {} {} {} {}", name_of(sides.precision), s, ta, tb, accumulate,
                      name_of(result)));
  const std::int64_t m = s[0], n = s[1], k = s[2];
  const Both a = sides.random(ta ? Shape{k, m} : Shape{m, k}, 1);
  const Both b = sides.random(tb ? Shape{n, k} : Shape{k, n}, 2);
  const Both c = sides.random({m, n}, 3, result);
  sides.run([&](Backend& on, auto of) {
    on.matmul(Matmul{.a = of(a),
                     .transpose_a = ta,
                     .b = of(b),
                     .transpose_b = tb,
                     .c = of(c),
                     .accumulate = accumulate});
  });
  check_near(c, result == Dtype::bf16 ? kBf16 : tolerance_of_f32(sides.precision), typical(k));
}

}  // namespace

TEST_CASE("cuda: product: all transpose forms and sizes, also odd and zero") {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const Shape& s : sizes())
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const bool accumulate : {false, true}) {
            check_product(sides, s, ta, tb, accumulate, Dtype::f32);
            if (precision == Precision::bf16)
              check_product(sides, s, ta, tb, accumulate, Dtype::bf16);
          }
  }
}

TEST_CASE("cuda: product: an empty sum, and several products in one call") {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const bool accumulate : {false, true})
      check_product(sides, {3, 4, 0}, false, true, accumulate, Dtype::f32);
    const Both a = sides.random({20, 30}, 1), b = sides.random({30, 40}, 2);
    const Both c = sides.random_f32({20, 40}, 3), d = sides.random_f32({20, 20}, 4);
    sides.run([&](Backend& on, auto of) {
      const Matmul both[] = {{.a = of(a), .b = of(b), .c = of(c)},
                             {.a = of(a), .b = of(a), .transpose_b = true, .c = of(d)}};
      on.matmul(std::span<const Matmul>(both));
    });
    check_near(c, tolerance_of_f32(precision), typical(30));
    check_near(d, tolerance_of_f32(precision), typical(30));
  }
}

TEST_CASE("cuda: product: an algorithm chosen by another worker, and a deterministic one") {
  for (const Precision precision : kPrecisions)
    for (const bool deterministic : {false, true}) {
      std::vector<float> first;
      for (int worker = 0; worker < 3; ++worker) {
        const Sides sides(precision, deterministic);
        const Both a = sides.random({100, 300}, 1), b = sides.random({50, 300}, 2);
        const Both c = sides.empty({100, 50}, Dtype::f32);
        for (int time = 0; time < 2; ++time) {
          sides.run([&](Backend& on, auto of) {
            on.matmul(Matmul{.a = of(a), .b = of(b), .transpose_b = true, .c = of(c)});
          });
          check_near(c, tolerance_of_f32(precision), typical(300));
          if (first.empty()) first = floats(c.gpu);
          if (deterministic) CHECK(floats(c.gpu) == first);
        }
      }
    }
}

TEST_CASE("cuda: product: linear layers, with and without ReLU") {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const Shape& s : sizes())
      for (const bool relu : {false, true}) {
        const std::int64_t n = s[0], out = s[1], in = s[2];
        CAPTURE(fmt::format("{} {} {}", name_of(precision), s, relu));
        const Both x = sides.random({n, in}, 1), weight = sides.random({out, in}, 2);
        const Both bias = sides.random_f32({out}, 3), y = sides.random({n, out}, 4);
        for (int time = 0; time < 2; ++time) {
          sides.run(
              [&](Backend& b, auto of) { b.linear(of(x), of(weight), of(bias), relu, of(y)); });
          check_near(y, tolerance_of_products(precision), typical(in));
        }
      }
  }
}

TEST_CASE("cuda: product: gradients of linear layers") {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const Shape& s : sizes())
      for (const bool rectified : {false, true})
        for (const bool accumulate : {false, true}) {
          const std::int64_t n = s[0], out = s[1], in = s[2];
          CAPTURE(fmt::format("{} {} {} {}", name_of(precision), s, rectified, accumulate));
          const Both x = sides.random({n, in}, 1), weight = sides.random({out, in}, 2);
          const Both dy = sides.random({n, out}, 3), before = sides.random({n, in}, 4);
          const Both dx = before.clone();
          // Where gradients of a rectified value are added up, each of them is rectified.
          if (rectified)
            sides.run(
                [&](Backend& b, auto of) { b.relu_gradient(of(x), of(before), of(dx), false); });
          const Both dweight = sides.random_f32({out, in}, 5), dbias = sides.random_f32({out}, 6);
          sides.run([&](Backend& b, auto of) {
            b.linear_gradient(of(x), of(weight), of(dy), rectified,
                              {.x = {of(dx), accumulate},
                               .weight = {of(dweight), accumulate},
                               .bias = {of(dbias), accumulate}});
          });
          check_near(dx, tolerance_of_products(precision), typical(out));
          check_near(dweight, tolerance_of_f32(precision), typical(n));
          check_near(dbias, tolerance_of_f32(precision), typical(n));
        }
  }
}

TEST_CASE("cuda: product: some of a linear layer's gradients only") {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    const Both x = sides.random({30, 40}, 1), weight = sides.random({20, 40}, 2);
    const Both dy = sides.random({30, 20}, 3);
    for (int wanted = 0; wanted < 8; ++wanted) {
      CAPTURE(wanted);
      const Both dx = sides.random({30, 40}, 4), dweight = sides.random_f32({20, 40}, 5);
      const Both dbias = sides.random_f32({20}, 6);
      sides.run([&](Backend& b, auto of) {
        LinearGradients into;
        if (wanted & 1) into.x.tensor = of(dx);
        if (wanted & 2) into.weight.tensor = of(dweight);
        if (wanted & 4) into.bias.tensor = of(dbias);
        b.linear_gradient(of(x), of(weight), of(dy), false, into);
      });
      check_near(dx, tolerance_of_products(precision), typical(20));
      check_near(dweight, tolerance_of_f32(precision), typical(30));
      check_near(dbias, tolerance_of_f32(precision), typical(30));
    }
  }
}
