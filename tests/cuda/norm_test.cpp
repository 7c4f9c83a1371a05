// The GPU's batch and response normalisation compared with the CPU's.
#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using After = ChannelNorm::After;

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t channels : {1, 3, 16, 24, 64, 100, 2048})
    for (const std::int64_t rows : {2, 7, 130, 1000})
      if (channels * rows < 300'000) all.push_back({rows, channels});
  all.push_back({2, 7, 7, 20});
  Random random(8);
  for (int i = 0; i < 10; ++i)
    all.push_back({static_cast<std::int64_t>(2 + random.below(500)),
                   static_cast<std::int64_t>(1 + random.below(200))});
  return all;
}

const Shape kLarge[] = {{50'000, 3}, {50'000, 24}, {50'000, 64}, {20'000, 100}, {1'000, 2048}};

std::int64_t rows_of(const Shape& shape) { return shape.count() / shape[-1]; }

double largest(const Tensor& x) {
  double most = 0;
  for (const float v : floats(x)) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

void check_statistics(const Sides& sides, const Both& x) {
  const Shape per_channel{x.cpu.size(-1)};
  const Both mean = sides.random_f32(per_channel, 2), inverse = sides.random_f32(per_channel, 3);
  const Both moved_mean = sides.random_f32(per_channel, 4);
  const Both moved_variance = sides.random_f32(per_channel, 5);
  sides.run([&](Backend& b, auto of) {
    b.batch_statistics(of(x), 1e-3, of(mean), of(inverse),
                       {of(moved_mean), of(moved_variance), 0.3});
  });
  check_near(mean, kF32, 1);
  check_near(inverse, kF32);
  check_near(moved_mean, kF32, 1);
  check_near(moved_variance, kF32);
}

// The same norm on both sides, with the CPU's statistics of x.
struct Norm {
  Norm(const Sides& sides, const Both& x, After its_after) : after(its_after) {
    const Shape per_channel{x.cpu.size(-1)};
    weight = sides.random_f32(per_channel, 11);
    bias = sides.random_f32(per_channel, 12);
    mean = sides.random_f32(per_channel, 13);
    inverse = sides.random_f32(per_channel, 14);
    const Both running = sides.random_f32(per_channel, 15);
    sides.cpu.backend().batch_statistics(x.cpu, 1e-5, mean.cpu, inverse.cpu,
                                         {running.cpu, running.cpu.clone(), 0.1});
    for (const Both* both : {&mean, &inverse})
      sides.gpu.backend().copy_from_host(std::as_bytes(both->cpu.span<float>()), both->gpu);
  }
  template <class Of>
  ChannelNorm on(Of of) const {
    return {of(mean), of(inverse), of(weight), of(bias), after};
  }
  Both weight, bias, mean, inverse;
  After after;
};

// What comes to the gradient: y, and what tells where it is above 0.
struct Forward {
  Both y, positive;
};

Forward forward(const Sides& sides, const Norm& norm, const Both& x, const Both& residual) {
  Forward result{sides.random(x.cpu.shape(), 20), {}};
  const Both none, &added = norm.after == After::add_relu ? residual : none;
  result.positive.cpu = sides.cpu.backend().channel_norm(
      norm.on([](const Both& b) { return b.cpu; }), x.cpu, added.cpu, result.y.cpu);
  result.positive.gpu = sides.gpu.backend().channel_norm(
      norm.on([](const Both& b) { return b.gpu; }), x.gpu, added.gpu, result.y.gpu);
  return result;
}

// Random numbers, but 0 where a ReLU of the norm sees next to 0: there rounding alone decides what
// it lets through.
Both clear_gradient(const Sides& sides, const Norm& norm, const Both& x, const Both& residual,
                    std::uint64_t seed) {
  Norm plain = norm;
  plain.after = After::nothing;
  const Tensor z = Tensor::empty(x.cpu.shape(), Dtype::f32, sides.cpu);
  sides.cpu.backend().channel_norm(plain.on([](const Both& b) { return b.cpu; }), x.cpu, Tensor(),
                                   z);
  if (norm.after == After::add_relu) sides.cpu.backend().add(z, residual.cpu, z);
  const auto values = random_values(x.cpu.count(), seed);
  std::vector<float> gradient(values.begin(), values.end());
  const auto seen = z.span<float>();
  for (std::size_t i = 0; i < gradient.size(); ++i)
    if (std::abs(seen[i]) < 1e-3F) gradient[i] = 0;
  return sides.from(gradient, x.cpu.shape(), sides.dtype);
}

void check_norm(const Sides& sides, const Shape& shape, After after) {
  CAPTURE(fmt::format("{} {} after {}", name_of(sides.precision), shape, static_cast<int>(after)));
  const double stored = tolerance_of_stored(sides.dtype);
  const Both x = sides.random(shape, 1), residual = sides.random(shape, 2);
  const Norm norm(sides, x, after);
  const Forward f = forward(sides, norm, x, residual);
  check_near(f.y, stored);

  const Both dy = clear_gradient(sides, norm, x, residual, 3);
  const Both more = clear_gradient(sides, norm, x, residual, 4);
  // dx is the rest of sums that cancel, times the inverse deviation.
  const double dx_size = largest(norm.inverse.cpu);
  const double sum_size = std::sqrt(static_cast<double>(rows_of(shape)));
  for (const bool with_more : {false, true})
    for (const bool accumulate : {false, true}) {
      // The CPU takes the sum, the GPU may take both parts.
      Both first = dy.clone(), second;
      if (with_more) {
        sides.cpu.backend().add(dy.cpu, more.cpu, first.cpu);
        second.gpu = more.gpu;
      }
      const Both dx = sides.random(shape, 5), dresidual = sides.random(shape, 6);
      const Both dweight = sides.random_f32({shape[-1]}, 7);
      const Both dbias = sides.random_f32({shape[-1]}, 8);
      sides.run([&](Backend& b, auto of) {
        ChannelNormGradients into{.x = {of(dx), accumulate},
                                  .weight = {of(dweight), accumulate},
                                  .bias = {of(dbias), accumulate}};
        if (after == After::add_relu) into.residual = {of(dresidual), accumulate};
        b.channel_norm_gradient(norm.on(of), of(x), of(f.positive), of(first), of(second), into);
      });
      check_near(dx, stored, dx_size);
      check_near(dresidual, stored);
      check_near(dweight, kF32, sum_size);
      check_near(dbias, kF32, sum_size);
    }
}

}  // namespace

TEST_CASE("cuda: kernel: batch statistics and running statistics") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : shapes()) {
      CAPTURE(fmt::format("{} {}", name_of(precision), shape));
      check_statistics(sides, sides.random(shape, 1));
    }
  }
}

TEST_CASE("cuda: kernel: a mean much larger than the deviation costs no precision") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t channels : {1, 3, 16, 64, 1100}) {
      CAPTURE(fmt::format("{} {}", name_of(precision), channels));
      const std::int64_t rows = 40'000 / channels + 500;
      Random random(1);
      std::vector<float> values(static_cast<std::size_t>(rows * channels));
      // bf16 has eight bits for both.
      const double mean = precision == Precision::bf16 ? 20 : 1000;
      for (float& v : values) v = static_cast<float>(mean + random.normal());
      check_statistics(sides, sides.from(values, {rows, channels}, sides.dtype));
    }
  }
}

TEST_CASE("cuda: kernel: inverse deviations of known variances") {
  const Sides sides(Precision::fp32);
  for (const std::int64_t channels : {1, 3, 64, 2048}) {
    const Both some = sides.random_f32({channels}, 1), variance = some.clone();
    const Both inverse = sides.random_f32({channels}, 2);
    sides.run([&](Backend& b, auto of) {
      b.relu(of(some), of(variance));
      b.inverse_deviation(of(variance), 1e-3, of(inverse));
    });
    check_near(inverse, kF32);
  }
}

TEST_CASE("cuda: kernel: batch norm and its gradient in all forms") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : shapes())
      for (const After after : {After::nothing, After::relu, After::add_relu})
        check_norm(sides, shape, after);
  }
}

TEST_CASE("cuda: large: batch norm of many rows") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : kLarge) {
      check_statistics(sides, sides.random(shape, 1));
      for (const After after : {After::nothing, After::relu, After::add_relu})
        check_norm(sides, shape, after);
    }
  }
}

TEST_CASE("cuda: kernel: some of a batch norm's gradients only") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : {Shape{70, 12}, Shape{50, 5}})
      for (const After after : {After::nothing, After::relu, After::add_relu})
        for (int wanted = 0; wanted < 16; ++wanted) {
          if (after != After::add_relu && (wanted & 2)) continue;
          CAPTURE(fmt::format("{} {} {}", name_of(precision), static_cast<int>(after), wanted));
          const Both x = sides.random(shape, 1), residual = sides.random(shape, 2);
          const Norm norm(sides, x, after);
          const Forward f = forward(sides, norm, x, residual);
          const Both dy = clear_gradient(sides, norm, x, residual, 3);
          const Both dx = sides.random(shape, 5), dresidual = sides.random(shape, 6);
          const Both dweight = sides.random_f32({shape[-1]}, 7);
          const Both dbias = sides.random_f32({shape[-1]}, 8);
          sides.run([&](Backend& b, auto of) {
            ChannelNormGradients into;
            if (wanted & 1) into.x = {of(dx), false};
            if (wanted & 2) into.residual = {of(dresidual), true};
            if (wanted & 4) into.weight = {of(dweight), true};
            if (wanted & 8) into.bias = {of(dbias), false};
            b.channel_norm_gradient(norm.on(of), of(x), of(f.positive), of(dy), Tensor(), into);
          });
          check_near(dx, tolerance_of_stored(sides.dtype), largest(norm.inverse.cpu));
          check_near(dresidual, tolerance_of_stored(sides.dtype));
          check_near(dweight, kF32, 10);
          check_near(dbias, kF32, 10);
        }
  }
}

TEST_CASE("cuda: kernel: response norm and its gradient") {
  const LocalResponseNorm norms[] = {
      {}, {5, 0.5, 0.75, 2}, {1, 2, 0.75, 1}, {4, 0.7, 0.75, 1}, {3, 0.3, 0.5, 1.5}, {9, 1, 1, 1}};
  std::vector<Shape> all = {{1, 1}, {2, 3, 5, 7}, {7, 5, 9, 96}, {3, 300}, {100, 256}, {9, 64}};
  Random random(9);
  for (int i = 0; i < 10; ++i)
    all.push_back({static_cast<std::int64_t>(1 + random.below(200)),
                   static_cast<std::int64_t>(1 + random.below(300))});
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const LocalResponseNorm& norm : norms)
      for (const Shape& shape : all) {
        CAPTURE(
            fmt::format("{} {} size {} beta {}", name_of(precision), shape, norm.size, norm.beta));
        const Both x = sides.random(shape, 1), y = sides.random(shape, 2);
        const Both dy = sides.random(shape, 3), dx = sides.random(shape, 4);
        sides.run([&](Backend& b, auto of) { b.local_response_norm(norm, of(x), of(y)); });
        check_near(y, tolerance_of_stored(sides.dtype));
        for (const bool accumulate : {true, false}) {
          sides.run([&](Backend& b, auto of) {
            b.local_response_norm_gradient(norm, of(x), of(dy), of(dx), accumulate);
          });
          check_near(dx, tolerance_of_stored(sides.dtype));
        }
      }
  }
}
