// The GPU's calls over rows and columns, and the loss, compared with the CPU's.
#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t columns : {1, 3, 10, 20, 64, 96, 320, 500, 1000, 4096})
    for (const std::int64_t rows : {0, 1, 100, 513}) all.push_back({rows, columns});
  Random random(2);
  for (int i = 0; i < 10; ++i)
    all.push_back({static_cast<std::int64_t>(1 + random.below(700)),
                   static_cast<std::int64_t>(1 + random.below(700))});
  return all;
}

void check_sums(const Sides& sides, const Shape& shape) {
  CAPTURE(shape.str());
  CAPTURE(name_of(sides.precision));
  const double typical = std::sqrt(static_cast<double>(shape[0]));  // of a sum of that many
  const Both x = sides.random(shape, 1), sums = sides.random_f32({shape[1]}, 2);
  for (const bool accumulate : {true, false}) {
    sides.run([&](Backend& b, auto of) { b.sum_rows(of(x), of(sums), accumulate); });
    check_near(sums, kF32, typical);
  }

  const Both dy = sides.random(shape, 3), masked = sides.random(shape, 4);
  for (const bool accumulate : {true, false}) {
    sides.run([&](Backend& b, auto of) {
      b.relu_bias_gradient(of(x), of(dy), of(masked), {of(sums), accumulate});
    });
    check_equal(masked);
    check_near(sums, kF32, typical);
  }
  // In place, and without sums.
  sides.run([&](Backend& b, auto of) { b.relu_bias_gradient(of(x), of(dy), of(dy), {}); });
  check_equal(dy);
}

// Labels that are spread over the classes.
std::vector<std::int32_t> some_labels(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < rows; ++r)
    labels.push_back(static_cast<std::int32_t>(r * 7919 % classes));
  return labels;
}

}  // namespace

TEST_CASE("cuda: kernel: sums over rows, also with a ReLU's mask") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : shapes()) check_sums(sides, shape);
  }
}

TEST_CASE("cuda: large: sums over many rows") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t columns : {1, 3, 10, 20, 64}) check_sums(sides, {200'000, columns});
  }
}

TEST_CASE("cuda: kernel: bias") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : shapes()) {
      CAPTURE(shape.str());
      CAPTURE(name_of(precision));
      const Both y = sides.random(shape, 1), bias = sides.random_f32({shape[1]}, 2);
      sides.run([&](Backend& b, auto of) { b.add_bias(of(bias), of(y)); });
      check_near(y, tolerance_of_stored(sides.dtype));
    }
  }
}

TEST_CASE("cuda: kernel: concatenation and its gradient") {
  const std::vector<std::int64_t> cases[] = {{1},
                                             {64, 96, 16, 32},
                                             {320, 768, 768, 192},
                                             {3, 5, 8},
                                             {4, 12, 20},
                                             {2, 0, 7},
                                             {8, 8, 8, 8, 8, 8, 8, 8, 8, 16, 24}};
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const auto& widths : cases)
      for (const std::int64_t rows : {0, 1, 100, 2 * 17 * 17}) {
        CAPTURE(name_of(precision));
        CAPTURE(fmt::format("{} rows, {} parts, first {}", rows, widths.size(), widths[0]));
        std::vector<Both> parts, gradients;
        std::int64_t columns = 0;
        for (const std::int64_t width : widths) {
          parts.push_back(sides.random({rows, width}, 1 + parts.size()));
          gradients.push_back(sides.random({rows, width}, 100 + parts.size()));
          columns += width;
        }
        const Both y = sides.random({rows, columns}, 50);
        sides.run([&](Backend& b, auto of) {
          std::vector<Tensor> of_side;
          for (const Both& part : parts) of_side.push_back(of(part));
          b.concat(of_side, of(y));
        });
        check_equal(y);
        sides.run([&](Backend& b, auto of) {
          std::vector<Backend::ConcatPart> into;
          for (std::size_t i = 0; i < parts.size(); ++i)
            into.push_back({widths[i], {i % 3 == 1 ? Tensor() : of(gradients[i]), i % 3 == 2}});
          b.concat_gradient(of(y), into);
        });
        for (const Both& gradient : gradients)
          check_near(gradient, tolerance_of_stored(sides.dtype));
      }
  }
}

TEST_CASE("cuda: kernel: softmax cross-entropy and its gradient") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t classes : {2, 10, 33, 257, 1000, 3000})
      for (const std::int64_t rows : {1, 7, 100, 300})
        for (const double smoothing : {0.0, 0.1})
          for (const float size : {1.0F, 500.0F}) {
            CAPTURE(name_of(precision));
            CAPTURE(fmt::format("{} rows, {} classes, {} {}", rows, classes, smoothing, size));
            auto values = random_values(rows * classes, 1);
            for (double& v : values) v *= static_cast<double>(size);
            const Both logits = sides.from(std::vector<float>(values.begin(), values.end()),
                                           {rows, classes}, sides.dtype);
            const Both labels = sides.from(some_labels(rows, classes), {rows});
            const Both p = sides.empty({rows, classes}, Dtype::f32);
            const Both loss = sides.empty({}, Dtype::f32);
            const double scale = 1.0 / static_cast<double>(rows);
            sides.run([&](Backend& b, auto of) {
              b.softmax_cross_entropy(of(logits), of(labels), smoothing, scale, of(p), of(loss));
            });
            check_near(p, kF32);
            check_near(loss, kF32);

            const Both dloss = sides.from({3}, {}, Dtype::f32);
            const Both dlogits = sides.random({rows, classes}, 2);
            for (const bool accumulate : {true, false}) {
              sides.run([&](Backend& b, auto of) {
                b.softmax_cross_entropy_gradient(of(p), of(labels), smoothing, scale, of(dloss),
                                                 of(dlogits), accumulate);
              });
              check_near(dlogits, tolerance_of_stored(sides.dtype), 3 * scale);
            }
          }
  }
}

TEST_CASE("cuda: kernel: an invalid label makes the loss NaN") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int32_t label : {-1, 3, 1 << 30}) {
      const Both logits = sides.random({2, 3}, 1), p = sides.empty({2, 3}, Dtype::f32);
      const Both loss = sides.empty({}, Dtype::f32), labels = sides.from({1, label}, {2});
      sides.gpu.backend().softmax_cross_entropy(logits.gpu, labels.gpu, 0, 1, p.gpu, loss.gpu);
      CHECK(std::isnan(loss.gpu.item()));
    }
  }
}

TEST_CASE("cuda: kernel: counting correct predictions, the first of equals wins") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t classes : {1, 2, 10, 33, 257, 1000, 3000})
      for (const std::int64_t rows : {1, 7, 100, 300}) {
        CAPTURE(fmt::format("{} rows, {} classes, {}", rows, classes, name_of(precision)));
        // Few different values, so that there are many equals; the label is mostly right.
        std::vector<float> values;
        std::vector<std::int32_t> labels;
        Random random(static_cast<std::uint64_t>(rows * classes));
        for (std::int64_t r = 0; r < rows; ++r) {
          labels.push_back(
              static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes))));
          for (std::int64_t c = 0; c < classes; ++c)
            values.push_back(static_cast<float>(random.below(4)) - 2);
          if (r % 3 != 0)
            values[static_cast<std::size_t>(r * classes + labels.back())] = r % 3 == 1 ? 1 : 5;
        }
        const Both logits = sides.from(values, {rows, classes}, sides.dtype);
        const Both y = sides.from(labels, {rows});
        const auto expected = sides.cpu.backend().count_correct(logits.cpu, y.cpu);
        CHECK(sides.gpu.backend().count_correct(logits.gpu, y.gpu) == expected);
      }
  }
}
