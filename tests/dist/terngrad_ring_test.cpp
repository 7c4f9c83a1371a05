#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "dist/block.h"
#include "dist/compress/compressor.h"

using namespace tandem;

namespace {

std::vector<float> normal_block(std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(kBlock);
  for (float& v : values) v = static_cast<float>(random.normal());
  return values;
}

std::vector<std::byte> packed(const Compressor& c, const std::vector<float>& values) {
  std::vector<std::byte> bytes(c.bytes(std::ssize(values)));
  c.compress(values, bytes);
  return bytes;
}

std::vector<float> unpacked(const Compressor& c, const std::vector<std::byte>& bytes) {
  std::vector<float> values(kBlock);
  c.decompress(bytes, values);
  return values;
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

// The mean of `rounds` blocks is near `expected`: within 5 standard deviations of each element.
// `deviation` bounds that of one block.
void check_means(const std::vector<double>& sums, int rounds, const std::vector<float>& expected,
                 double deviation) {
  const double allowed = 5 * deviation / std::sqrt(rounds);
  for (std::size_t i = 0; i < sums.size(); ++i)
    REQUIRE(std::abs(sums[i] / rounds - static_cast<double>(expected[i])) <= allowed);
}

constexpr int kRounds = 4000;

// Other bits, and so other random numbers, but nearly the same values. Element 0 is small.
void disturb(std::vector<float>& values, int round) {
  values[0] = 1e-6F * static_cast<float>(round);
}

}  // namespace

TEST_CASE("terngrad-ring: a block has a scale and 2 bits per element") {
  const auto c = make_compressor("terngrad-ring");
  CHECK(c->bytes(kBlock) == 516);
  CHECK(c->bytes(kBlock + 1) == 516 + 4 + 2);
  CHECK(c->bytes(9) == 4 + 4);
  CHECK(!c->lossless());
  CHECK(!c->divides_blocks());
}

TEST_CASE("terngrad-ring: values become 0 or the largest magnitude, and the same bits repeat") {
  const auto c = make_compressor("terngrad-ring");
  const auto values = normal_block(1);
  const float largest = largest_of(values);
  const auto bytes = packed(*c, values);
  CHECK(packed(*c, values) == bytes);
  const auto back = unpacked(*c, bytes);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < back.size(); ++i) {
    zeros += back[i] == 0 ? 1 : 0;
    REQUIRE((back[i] == 0 || back[i] == std::copysign(largest, values[i])));
  }
  CHECK(zeros > 0);
  CHECK(zeros < back.size());
  auto others = values;
  others[100] = -others[100];
  CHECK(packed(*c, others) != bytes);
}

TEST_CASE("terngrad-ring: it is right in the mean") {
  const auto c = make_compressor("terngrad-ring");
  auto values = normal_block(2);
  std::vector<double> sums(values.size());
  for (int round = 0; round < kRounds; ++round) {
    disturb(values, round);
    const auto back = unpacked(*c, packed(*c, values));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(back[i]);
  }
  values[0] = 0;
  check_means(sums, kRounds, values, static_cast<double>(largest_of(values)));
}

TEST_CASE("terngrad-ring: sums of several hops are right in the mean") {
  const auto c = make_compressor("terngrad-ring");
  constexpr std::uint64_t kWorkers = 4;
  std::vector<std::vector<float>> workers;
  std::vector<float> expected(kBlock);
  double deviation = 0;  // each rounding has at most that of the largest possible sum
  for (std::uint64_t w = 0; w < kWorkers; ++w) {
    workers.push_back(normal_block(10 + w));
    workers.back()[0] = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += workers.back()[i];
    deviation += static_cast<double>(largest_of(workers.back()));
  }
  deviation *= std::sqrt(2.0 * kWorkers - 1);  // own values, and all hops
  std::vector<double> sums(expected.size());
  for (int round = 0; round < kRounds; ++round) {
    for (auto& values : workers) disturb(values, round);
    auto partial = packed(*c, workers[0]);
    for (std::size_t w = 1; w < workers.size(); ++w)
      c->add_packed(partial, packed(*c, workers[w]), kBlock, partial);
    const auto sum = unpacked(*c, partial);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(sum[i]);
  }
  check_means(sums, kRounds, expected, deviation);
}

TEST_CASE("terngrad-ring: too few bytes are refused") {
  const auto c = make_compressor("terngrad-ring");
  const auto bytes = packed(*c, normal_block(1));
  std::vector<float> values(kBlock);
  CHECK_THROWS(c->decompress(std::span(bytes).first(bytes.size() - 1), values));
}
