#include "dist/codecs/levels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "tests/dist/codecs.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("codecs: levels are kept as they are, by every width and in blocks of any length") {
  Random random(6);
  for (int bits = 2; bits <= 8; ++bits)
    for (const std::size_t n : {1, 7, 8, 9, 100, 1023, 1025, 2047, 2048}) {
      CAPTURE(bits);
      CAPTURE(n);
      const int levels = (1 << (bits - 1)) - 1;
      std::vector<float> values(n), decoded(n, 1);
      for (float& v : values)
        v = static_cast<float>(random.below(static_cast<std::uint64_t>(2 * levels + 1))) -
            static_cast<float>(levels);
      values[n / 2] = static_cast<float>(-levels);
      std::vector<std::byte> bytes(level_bytes(bits, static_cast<std::int64_t>(n)));
      CHECK(encode_levels(bits, values, random.key(), 0, bytes.data()) == bytes.size());
      CHECK(decode_levels(bits, bytes, decoded) == bytes.size());
      CHECK(decoded == values);
    }
}

TEST_CASE("codecs: a block with NaN or infinity is decoded as NaN") {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(100, 1), decoded(100);
    values[50] = wrong;
    std::vector<std::byte> bytes(level_bytes(4, 100));
    encode_levels(4, values, 1, 0, bytes.data());
    decode_levels(4, bytes, decoded);
    CHECK(std::ranges::all_of(decoded, [](float v) { return std::isnan(v); }));
  }
}

// The mean of n roundings of v has this standard deviation: a rounding goes up or down by a part of
// a step.
TEST_CASE("codecs: QSGD and TernGrad without clipping are right in the mean") {
  const CodecNet net;
  std::vector<float> values = whole_numbers(net, 5);
  values.resize(static_cast<std::size_t>(kBlock));
  const double largest =
      std::abs(*std::ranges::max_element(values, {}, [](float v) { return std::abs(v); }));
  for (const auto& [text, levels] : std::vector<std::pair<std::string, int>>{
           {"terngrad:0", 1}, {"qsgd:2", 1}, {"qsgd:3", 3}, {"qsgd:5", 15}, {"qsgd:8", 127}}) {
    CAPTURE(text);
    const auto made = codec(net, text);
    constexpr int kRounds = 2000;
    std::vector<double> sums(values.size());
    for (int round = 1; round <= kRounds; ++round) {
      const auto now = sent(*made->blocks(), round, values);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += now[i];
    }
    const double step = largest / levels;
    double squares = 0, worst = 0;
    std::size_t rounded = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double part = std::abs(values[i]) / step - std::floor(std::abs(values[i]) / step);
      const double deviation = step * std::sqrt(part * (1 - part) / kRounds);
      const double off = std::abs(sums[i] / kRounds - values[i]);
      if (part < 0.01 || part > 0.99) continue;  // hardly ever rounded the other way
      ++rounded;
      squares += off * off / (deviation * deviation);
      worst = std::max(worst, off / deviation);
    }
    // 2,000 normal numbers exceed 5.5 with a probability of 1e-4, and the mean of their squares is
    // within 1 ± 5·√(2/n).
    CHECK(worst < 5.5);
    const auto n = static_cast<double>(rounded);
    CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
  }
}

TEST_CASE("codecs: TernGrad cuts magnitudes above a number of standard deviations") {
  const CodecNet net;
  std::vector<float> values(static_cast<std::size_t>(kBlock), 1);
  values[7] = 1000;  // the standard deviation is 22.1
  const auto made = codec(net, "terngrad:2.5");
  const auto now = sent(*made->blocks(), 1, values);
  const double deviation = std::sqrt((1e6 + 2047) / 2048);
  CHECK(now[7] == doctest::Approx(2.5 * deviation).epsilon(1e-5));
}

TEST_CASE("codecs: workers round differently, and each the same in every run") {
  const CodecNet net;
  const auto gradient = whole_numbers(net, 3);
  const auto by = [&](int rank, std::int64_t t) {
    return sent(*codec(net, "qsgd:2", 2, rank)->blocks(), t, gradient);
  };
  CHECK(by(0, 1) == by(0, 1));
  CHECK(by(0, 1) != by(1, 1));
  CHECK(by(0, 1) != by(0, 2));
}
