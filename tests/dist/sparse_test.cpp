#include "dist/codecs/sparse.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "tests/dist/codecs.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("codecs: sparse blocks are decoded as they were, whole if that is shorter") {
  std::vector<float> values(2048), decoded(2048);
  std::vector<std::byte> bytes(most_sparse_bytes(2048, 2048));
  for (const std::size_t many : {0, 1, 100, 1364, 1366, 2048}) {
    std::ranges::fill(values, 0.0F);
    for (std::size_t i = 0; i < many; ++i) values[(i * 37) % 2048] = static_cast<float>(i + 1);
    const std::size_t used = encode_sparse(values, bytes.data());
    CHECK(used == 2 + std::min<std::size_t>(6 * many, 8192));
    CHECK(decode_sparse(bytes, decoded) == used);
    CHECK(decoded == values);
  }
}

TEST_CASE("codecs: the largest elements are chosen; of equal ones, the first") {
  Random random(3);
  for (const std::size_t n : {1, 2, 100, 2048})
    for (const std::uint64_t different : {1, 2, 50, 1'000'000})
      for (const std::size_t k : {std::size_t{1}, n / 10 + 1, n}) {
        std::vector<float> values(n);
        for (float& v : values)
          v = (random.below(2) ? 1e-3F : -1e-3F) * static_cast<float>(random.below(different));
        std::vector<std::uint16_t> expected(n);
        std::iota(expected.begin(), expected.end(), std::uint16_t{0});
        std::ranges::stable_sort(expected, std::greater<>(),
                                 [&](std::uint16_t i) { return std::abs(values[i]); });
        expected.resize(k);
        std::ranges::sort(expected);
        Chosen chosen;
        choose_largest(values, k, chosen);
        CHECK(std::ranges::equal(chosen.all(), expected));
      }
}

TEST_CASE("codecs: top-k and DGC send NaN at once, so that it is noticed, and forget it") {
  const CodecNet net;
  for (const char* text : {"topk:0.01", "dgc:0.01"}) {
    CAPTURE(text);
    const auto made = codec(text, {.parameters = net.set, .momentum = 0.9});
    for (std::int64_t t = 1; t <= 6; ++t) {
      auto gradient = whole_numbers(net, static_cast<std::uint64_t>(t));
      const auto wrong = static_cast<std::size_t>(net.b.offset + 10);
      if (t == 4) gradient[wrong] = std::numeric_limits<float>::quiet_NaN();
      const auto now = sent(*made->blocks(), t, gradient);
      CHECK(std::isnan(now[wrong]) == (t == 4));
      CHECK(std::ranges::count_if(now, [](float v) { return std::isnan(v); }) == (t == 4 ? 1 : 0));
    }
  }
}
