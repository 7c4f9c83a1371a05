#include "dist/compress/compressor.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "dist/block.h"
#include "dist/compress/hop.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kCounts[] = {0, 1, 7, 2047, 2048, 2049, 3 * kBlock + 5};

// Magnitudes differ widely between blocks, as gradients do between layers.
std::vector<float> gradient(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double size = std::pow(10.0, -static_cast<double>(i / kBlock));
    values[i] = static_cast<float>(size * random.normal());
  }
  return values;
}

std::vector<std::byte> packed(const Compressor& c, const std::vector<float>& values) {
  std::vector<std::byte> bytes(c.bytes(static_cast<std::int64_t>(values.size())));
  c.compress(values, bytes);
  return bytes;
}

std::vector<float> unpacked(const Compressor& c, const std::vector<std::byte>& bytes,
                            std::size_t count) {
  std::vector<float> values(count);
  c.decompress(bytes, values);
  return values;
}

std::vector<float> round_trip(const Compressor& c, const std::vector<float>& values) {
  return unpacked(c, packed(c, values), values.size());
}

float largest_in_block(const std::vector<float>& values, std::size_t i) {
  const std::size_t begin = i / kBlock * kBlock, end = std::min(values.size(), begin + kBlock);
  float largest = 0;
  for (std::size_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(values[k]));
  return largest;
}

}  // namespace

TEST_CASE("compress: sizes on the wire") {
  CHECK(make_compressor("none")->bytes(2049) == 8196);
  CHECK(make_compressor("trunc16")->bytes(2049) == 4098);
  CHECK(make_compressor("quant8")->bytes(2048) == 2052);
  CHECK(make_compressor("quant8")->bytes(2049) == 2057);
  for (const std::string& name : compressor_names()) {
    CHECK(make_compressor(name)->bytes(0) == 0);
    CHECK(make_compressor(name)->name() == name);
  }
  CHECK_THROWS_AS(make_compressor("zip"), UserError);
}

TEST_CASE("compress: none loses nothing, trunc16 the low half, quant8 at most half a step") {
  for (const std::int64_t count : kCounts) {
    const auto values = gradient(count, 1);
    CHECK(round_trip(*make_compressor("none"), values) == values);

    const auto truncated = round_trip(*make_compressor("trunc16"), values);
    const auto quantized = round_trip(*make_compressor("quant8"), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(values[i]) & 0xffff0000U;
      REQUIRE(std::bit_cast<std::uint32_t>(truncated[i]) == bits);
      const double step = static_cast<double>(largest_in_block(values, i)) / 127;
      REQUIRE(std::abs(static_cast<double>(quantized[i]) - static_cast<double>(values[i])) <=
              0.5001 * step);
    }
  }
}

TEST_CASE("compress: quant8 keeps the largest value of a block, zeros, and signs") {
  std::vector<float> values(kBlock, 0.0F);
  values[5] = -3.0F;
  values[6] = 3.0F;
  const auto back = round_trip(*make_compressor("quant8"), values);
  CHECK(back[5] == doctest::Approx(-3));
  CHECK(back[6] == doctest::Approx(3));
  CHECK(back[7] == 0);
  CHECK(round_trip(*make_compressor("quant8"), std::vector<float>(100)) == std::vector<float>(100));
  // Values too small for a scale become zero, not infinity.
  const auto tiny = round_trip(*make_compressor("quant8"), std::vector<float>(3, 1e-44F));
  CHECK(tiny == std::vector<float>(3));
}

TEST_CASE("compress: add() has the bits of decompress, add, compress, also in place") {
  for (const std::string& name : compressor_names())
    for (const std::int64_t count : kCounts) {
      CAPTURE(name);
      CAPTURE(count);
      const auto c = make_compressor(name);
      auto received = packed(*c, gradient(count, 1));
      const auto own = gradient(count, 2);
      auto sum = unpacked(*c, received, own.size());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
      const auto expected = packed(*c, sum);

      std::vector<std::byte> out(expected.size());
      c->add(received, own, out);
      CHECK(out == expected);
      c->add(received, own, received);
      CHECK(received == expected);
    }
}

TEST_CASE("compress: NaN and infinity never become an ordinary number") {
  const float infinity = std::numeric_limits<float>::infinity();
  // The second NaN has its only set mantissa bit in the half that trunc16 drops.
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::bit_cast<float>(0x7f800001U), infinity, -infinity})
    for (const std::string& name : compressor_names()) {
      CAPTURE(name);
      const auto c = make_compressor(name);
      auto values = gradient(2 * kBlock, 1);
      values[100] = bad;
      const auto back = round_trip(*c, values);
      CHECK(!std::isfinite(back[100]));
      for (std::size_t i = kBlock; i < values.size(); ++i)  // the next block is not affected
        REQUIRE(std::isfinite(back[i]));

      // The same through a hop, from either side.
      const auto good = gradient(2 * kBlock, 2);
      auto bytes = packed(*c, good);
      c->add(bytes, values, bytes);
      CHECK(!std::isfinite(unpacked(*c, bytes, values.size())[100]));
      bytes = packed(*c, values);
      c->add(bytes, good, bytes);
      CHECK(!std::isfinite(unpacked(*c, bytes, values.size())[100]));
    }
}

TEST_CASE("compress: compression is idempotent") {
  Random random(3);
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    std::vector<float> values(10'000);
    for (int round = 0; round < 20; ++round) {
      const double scale = std::pow(10.0, random.uniform(-30, 30));
      for (float& v : values) v = static_cast<float>(scale * random.normal());
      round_to_compressed(*compressor, values);
      auto again = values;
      round_to_compressed(*compressor, again);
      CHECK(again == values);
    }
  }
}

TEST_CASE("compress: a hop adds the compressed values of both ranks, for all sizes") {
  for (const std::string& name : compressor_names())
    for (const std::int64_t count : kCounts) {
      const auto c = make_compressor(name);
      const auto received = packed(*c, gradient(count, 1));
      auto own = gradient(count, 2);
      auto hop = packed(*c, own);
      add_received(*c, {.count = count, .step = kBlock}, received, hop, hop);
      round_to_compressed(*c, own);
      std::vector<std::byte> expected(received.size());
      c->add(received, own, expected);
      CHECK(hop == expected);
    }
}

TEST_CASE("compress: all hops at once have the bits of one hop after another") {
  for (const std::string& name : compressor_names())
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{777}, kBlock})
      for (int ranks = 1; ranks <= 5; ++ranks)
        for (int owner = 0; owner < ranks; ++owner) {
          const auto c = make_compressor(name);
          std::vector<std::vector<std::byte>> values;
          for (int rank = 0; rank < ranks; ++rank)
            values.push_back(packed(*c, gradient(count, static_cast<std::uint64_t>(rank))));
          const auto of = [&](int hop) -> auto& {
            return values[static_cast<std::size_t>((owner + hop) % ranks)];
          };
          auto expected = of(1);
          for (int hop = 2; hop <= ranks; ++hop)
            add_received(*c, {.count = count, .step = kBlock}, expected, of(hop), expected);
          for (int place = 0; place < ranks; ++place) {  // the rank whose values the sum replaces
            auto copies = values;
            auto& sum = copies[static_cast<std::size_t>(place)];
            const std::vector<ConstPieces> in(copies.begin(), copies.end());
            add_in_order(*c, in, owner, 0, count, sum);
            CHECK(sum == expected);
          }
        }
}

TEST_CASE("compress: a hop accepts own values in pieces, also from within a block on") {
  for (const char* name : {"none", "trunc16"})
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{300}, kBlock - 1})
      for (const std::int64_t count : {std::int64_t{5}, kBlock, 3 * kBlock - 7}) {
        const auto c = make_compressor(name);
        const Segment segment{.first = first, .count = count, .step = 3 * kBlock};
        const auto all = packed(*c, gradient(10 * kBlock, 1));
        std::vector<std::byte> own;  // contiguous
        std::int64_t runs = 0;
        segment.for_each_run(kBlock, [&](std::int64_t at, std::int64_t i, std::int64_t n) {
          CHECK(c->bytes(i) == own.size());
          CHECK(at / kBlock == (at + n - 1) / kBlock);
          CHECK(at / kBlock == 3 * runs++);
          const auto run = std::span(all).subspan(c->bytes(at), c->bytes(n));
          own.insert(own.end(), run.begin(), run.end());
        });
        REQUIRE(own.size() == c->bytes(count));
        const auto received = packed(*c, gradient(count, 2));
        std::vector<std::byte> expected(own.size()), sum(own.size());
        add_received(*c, {.count = count, .step = kBlock}, received, own, expected);
        const ConstPieces pieces(all.data() + c->bytes(first), own.size(),
                                 c->bytes(segment.head(kBlock)), c->bytes(kBlock),
                                 c->bytes(segment.step));
        add_received(*c, segment, received, pieces, sum);
        CHECK(sum == expected);
      }
}
