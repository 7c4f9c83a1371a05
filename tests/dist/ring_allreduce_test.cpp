#include "dist/ring_allreduce/ring_allreduce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "dist/compress/packing.h"
#include "tensor/random.h"
#include "tests/dist/ranks.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<float> gradient(std::int64_t count, int rank) {
  Random random(static_cast<std::uint64_t>(rank) + 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(random.uniform(-1, 1));
  return values;
}

// The sum as the definition says: block by block, from the owner's neighbour round to the owner,
// compressed after every addition, each contribution compressed first.
std::vector<float> reference(const Compressor& c, std::int64_t count, int ranks) {
  std::vector<float> sum(static_cast<std::size_t>(count));
  std::vector<std::vector<float>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(gradient(count, rank));
    round_to_compressed(c, parts.back());
  }
  for (std::int64_t b = 0; b < blocks_of(count); ++b) {
    const auto block = block_of(std::span(sum), b);
    const auto part = [&](int position) {
      return block_of(std::span(parts[static_cast<std::size_t>((b + 1 + position) % ranks)]), b);
    };
    std::copy(part(0).begin(), part(0).end(), block.begin());
    for (int position = 1; position < ranks; ++position) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] += part(position)[i];
      round_to_compressed(c, block);
    }
  }
  return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE(
    "ring plan: what is received is sent on, sums end at their owners, all shares get round") {
  for (int ranks = 1; ranks <= 16; ++ranks)
    for (int rank = 0; rank < ranks; ++rank) {
      const auto plan = ring_plan(rank, ranks);
      const auto left = ring_plan((rank + ranks - 1) % ranks, ranks);
      REQUIRE(plan.size() == static_cast<std::size_t>(2 * (ranks - 1)));
      std::set<int> added, gathered;
      for (std::size_t s = 0; s < plan.size(); ++s) {
        CHECK(plan[s].receive_share == left[s].send_share);
        if (s > 0) CHECK(plan[s].send_share == plan[s - 1].receive_share);
        CHECK(plan[s].completes ==
              (plan[s].phase == RingStep::Phase::reduce_scatter && plan[s].receive_share == rank));
        (plan[s].phase == RingStep::Phase::reduce_scatter ? added : gathered)
            .insert(plan[s].receive_share);
      }
      CHECK(added.size() == static_cast<std::size_t>(ranks - 1));
      CHECK(gathered.size() == static_cast<std::size_t>(ranks - 1));
      CHECK(gathered.count(rank) == 0);
    }
}

TEST_CASE("blocks: segments cover every element of every share once") {
  for (const std::int64_t count : {0, 1, 2047, 2048, 2049, 100'001})
    for (const int shares : {1, 2, 3, 7}) {
      std::vector<int> seen(static_cast<std::size_t>(blocks_of(count)));
      std::int64_t elements = 0;
      for (int share = 0; share < shares; ++share)
        for (const Segment& segment : segments_of_share(count, shares, share, 3)) {
          elements += count_of(segment, count);
          CHECK(segment.blocks >= 1);
          for (std::int64_t i = 0; i < segment.blocks; ++i) {
            CHECK(segment.block(i) % shares == share);
            ++seen.at(static_cast<std::size_t>(segment.block(i)));
          }
        }
      CHECK(elements == count);
      CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    }
}

TEST_CASE("ring all-reduce: the bits of the definition on every rank, for all sizes") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 1; ranks <= 16; ++ranks)
      for (const std::int64_t count : {0, 1, 7, 2047, 2048, 2049, 200'003}) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(count);
        const auto expected = reference(*compressor, count, ranks);
        std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
        on_ranks(ranks, [&](Transport& t) {
          Spans spans;
          RingAllReduce ring(t, ranks, *compressor, spans);
          auto values = gradient(count, t.rank());
          ring.sum(values);
          values = gradient(count, t.rank());  // a ring is used many times
          ring.sum(values);
          results[static_cast<std::size_t>(t.rank())] = values;
        });
        for (const auto& result : results) REQUIRE(same_bits(result, expected));
      }
  }
}

TEST_CASE("ring all-reduce: one ring can sum different counts, also behind a link") {
  const auto compressor = make_none();
  on_ranks(
      3,
      [&](Transport& t) {
        Spans spans;
        RingAllReduce ring(t, 3, *compressor, spans);
        for (const std::int64_t count : {5000, 0, 70'000, 5000}) {
          auto values = gradient(count, t.rank());
          ring.sum(values);
          REQUIRE(same_bits(values, reference(*compressor, count, 3)));
        }
        CHECK(spans.seconds(SpanKind::communicate) > 0);
        CHECK(spans.seconds(SpanKind::compress) > 0);
      },
      parse_link("10gbit/10us"));
}

TEST_CASE("ring all-reduce: each rank sends 2(p-1)/p of what compression leaves") {
  constexpr std::int64_t kCount = 4 * 10 * kBlock;
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    on_ranks(4, [&](Transport& t) {
      Spans spans;
      RingAllReduce ring(t, 4, *compressor, spans);
      auto values = gradient(kCount, t.rank());
      ring.sum(values);
      CHECK(t.bytes_sent(Tag::ring) ==
            static_cast<std::int64_t>(2 * 3 * compressor->bytes(kCount / 4)));
    });
  }
}

TEST_CASE("ring all-reduce: NaN stays visible on every rank") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    on_ranks(3, [&](Transport& t) {
      Spans spans;
      RingAllReduce ring(t, 3, *compressor, spans);
      auto values = gradient(10'000, t.rank());
      if (t.rank() == 1) values[5000] = std::numeric_limits<float>::quiet_NaN();
      ring.sum(values);
      CHECK(std::isnan(values[5000]));
      CHECK(std::isfinite(values[0]));
    });
  }
}
