// Counter-based random numbers: number i of a stream is a hash of the stream's key and i. Any
// thread can read a stream at any position, and two integers are enough to resume it. Only integer
// arithmetic, + - * / and sqrt are used, so the numbers are the same on every platform.
#pragma once

#include <cmath>
#include <cstdint>

namespace tandem {

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), a bijection that mixes all bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Natural logarithm of x > 0, to about one unit in the last place. It uses only exactly rounded
// operations, because the C library's logarithm differs between platforms.
inline double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  if (mantissa < 0.70710678118654752440) {
    mantissa *= 2;
    --exponent;
  }
  const double z = (mantissa - 1) / (mantissa + 1);  // |z| < 0.172
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * z * z + 1.0 / k;
  return 2 * z * series + exponent * 0.69314718055994530942;
}

// What random numbers are used for. Each purpose has its own streams.
enum class Purpose : std::uint64_t {
  weights,
  order,
  augmentation,
  dropout,
  drawing,
  gossip,
  rounding
};

class Random {
 public:
  Random() = default;
  explicit constexpr Random(std::uint64_t key) : key_(mix64(key ^ 0x74616e64656dULL)) {}
  constexpr Random(std::uint64_t seed, Purpose purpose)
      : Random(Random(seed).split(static_cast<std::uint64_t>(purpose))) {}

  // An independent stream numbered `id`, such as one per epoch, and then one per sample.
  constexpr Random split(std::uint64_t id) const {
    Random other;
    other.key_ = mix64(key_ + mix64(id + 0x9e3779b97f4a7c15ULL));
    return other;
  }

  constexpr std::uint64_t key() const { return key_; }  // determines split() and bits_at()

  // Number i of the stream. Does not advance the stream.
  constexpr std::uint64_t bits_at(std::uint64_t i) const {
    return mix64(key_ + i * 0x9e3779b97f4a7c15ULL);
  }
  constexpr std::uint64_t bits() { return bits_at(next_++); }

  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // [0, n), each value equally likely.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n;
    std::uint64_t value = bits();
    while (value >= limit) value = bits();
    return value % n;
  }
  // Mean 0, standard deviation 1, by Marsaglia's polar method.
  double normal() {
    double u = 0, v = 0, s = 0;
    do {
      u = uniform(-1, 1);
      v = uniform(-1, 1);
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * std::sqrt(-2 * portable_log(s) / s);
  }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace tandem
