// Runs the same calls on the same values on CPU and GPU, and checks how far the results differ. The
// CPU computes in f32, on values rounded like the GPU's.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensor/backend.h"
#include "tensor/cuda/cuda_backend.h"
#include "tests/support.h"

namespace tandem::test {

// Errors are relative to the largest value of a result.
inline constexpr double kF32 = 1e-5;   // sums in another order, and fused multiply-adds
inline constexpr double kTf32 = 2e-3;  // each factor has lost up to 5e-4
inline constexpr double kBf16 = 1e-2;  // results have lost up to 4e-3, some of them twice
// Winograd's and Fourier's transforms, on either side, cost some digits.
inline constexpr double kF32Convolution = 1e-4;
// Products of bf16 factors are exact, and their sums are f32 with a few bits less.
inline constexpr double kF32OfBf16 = 2e-4;

// Of what is computed in f32 and stored as `dtype`.
inline double tolerance_of_stored(Dtype dtype) { return dtype == Dtype::bf16 ? kBf16 : kF32; }
// Of products that are stored as activations are.
inline double tolerance_of_products(Precision precision) {
  return precision == Precision::bf16 ? kBf16 : precision == Precision::tf32 ? kTf32 : kF32;
}

inline constexpr Precision kPrecisions[] = {Precision::fp32, Precision::tf32, Precision::bf16};
// Where there are no products, these are all the differences there can be.
inline constexpr Precision kTypes[] = {Precision::fp32, Precision::bf16};

inline std::string name_of(Precision precision) { return to_string(precision); }

// To the nearest, of two the even one.
inline float round_to_bf16(float value) {
  if (std::isnan(value)) return value;
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xffff0000);
}

// A tensor of both sides; undefined where a call wants none.
struct Both {
  Tensor cpu, gpu;
  Both clone() const { return {cpu.clone(), gpu.clone()}; }
};

// The elements of a tensor, whatever its type.
inline std::vector<float> floats(const Tensor& x) {
  if (x.dtype() == Dtype::f32) return x.to_host<float>();
  const Tensor wide = Tensor::empty(x.shape(), Dtype::f32, x.device());
  x.backend().cast(x, wide);
  return wide.to_host<float>();
}

class Sides {
 public:
  explicit Sides(Precision with, bool deterministic = false)
      : cpu(cpu_device(4)),
        gpu(cuda_device({.precision = with, .deterministic = deterministic})),
        precision(with),
        dtype(activation_dtype(with)) {}

  Device cpu, gpu;
  Precision precision;
  Dtype dtype;  // of activations on the GPU

  // Rounded to `on_gpu` if that is bf16.
  Both from(std::vector<float> values, const Shape& shape, Dtype on_gpu) const {
    if (on_gpu == Dtype::bf16)
      for (float& value : values) value = round_to_bf16(value);
    const Tensor wide = Tensor::from(values, shape, gpu);
    if (on_gpu == Dtype::f32) return {Tensor::from(values, shape, cpu), wide};
    const Tensor narrow = Tensor::empty(shape, on_gpu, gpu);
    gpu.backend().cast(wide, narrow);
    return {Tensor::from(values, shape, cpu), narrow};
  }
  Both from(const std::vector<std::int32_t>& values, const Shape& shape) const {
    return {Tensor::from(values, shape, cpu), Tensor::from(values, shape, gpu)};
  }
  // Between -1 and 1, none near 0.
  Both random(const Shape& shape, std::uint64_t seed, Dtype on_gpu) const {
    const auto values = random_values(shape.count(), seed);
    return from(std::vector<float>(values.begin(), values.end()), shape, on_gpu);
  }
  Both random(const Shape& shape, std::uint64_t seed) const { return random(shape, seed, dtype); }
  Both random_f32(const Shape& shape, std::uint64_t seed) const {
    return random(shape, seed, Dtype::f32);
  }
  Both empty(const Shape& shape, Dtype both) const {
    return {Tensor::empty(shape, both, cpu), Tensor::empty(shape, both, gpu)};
  }

  // f(backend, of) on each side, where of(both) is the side's tensor.
  template <class F>
  void run(F&& f) const {
    f(cpu.backend(), [](const Both& both) { return both.cpu; });
    f(gpu.backend(), [](const Both& both) { return both.gpu; });
  }
};

// Within `tolerance` of the largest value or, where sums may cancel, of `least` if that is more.
// NaN and infinity must be where they are on the CPU.
inline void check_near(const std::vector<float>& expected, const std::vector<float>& values,
                       double tolerance, double least = 0) {
  REQUIRE(values.size() == expected.size());
  double largest = least, worst = 0;
  std::size_t where = 0;
  for (const float e : expected)
    if (std::isfinite(e)) largest = std::max(largest, std::abs(static_cast<double>(e)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]))) continue;
    const double error = std::abs(static_cast<double>(values[i]) - expected[i]);
    if (error <= worst) continue;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    where = i;
  }
  if (worst > tolerance * largest)
    FAIL_CHECK(fmt::format("element {} of {} is {} instead of {}; {:.2e} of the largest, {}", where,
                           values.size(), values[where], expected[where], worst / largest,
                           largest));
}
inline void check_near(const Both& result, double tolerance, double least = 0) {
  check_near(floats(result.cpu), floats(result.gpu), tolerance, least);
}

// Bit for bit, but for the sign of 0.
inline void check_equal(const Both& result) { check_near(result, 0); }

}  // namespace tandem::test
