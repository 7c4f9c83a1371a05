#include "dist/ring_allreduce/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

using namespace tandem;

TEST_CASE("blocks: ranks own equally many blocks of any range, give or take one") {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (std::int64_t first = 0; first < 20; ++first)
      for (std::int64_t blocks = 0; blocks < 30; ++blocks) {
        const BlockRange range{.count = blocks * kBlock, .first_block = first};
        std::int64_t fewest = blocks, most = 0, all = 0;
        for (int share = 0; share < ranks; ++share) {
          const std::int64_t own = range.blocks_of(share, ranks);
          for (std::int64_t i = 0; i < own; ++i)
            REQUIRE(owner(first + range.first_of(share, ranks) + i * ranks, ranks) == share);
          fewest = std::min(fewest, own), most = std::max(most, own), all += own;
        }
        REQUIRE(all == blocks);
        REQUIRE(most - fewest <= 1);
      }
}

TEST_CASE("ring plan: receives match the left neighbour's sends, and sums end at their owners") {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (const std::int64_t blocks : {0, 1, 5, 24, 67})
      for (const std::int64_t first_block : {0, 5})
        for (const Pipelining how :
             {Pipelining{.segment = 3 * kBlock, .in_part = 2},
              Pipelining{.segment = kBlock / 4, .in_part = 8},
              Pipelining{.segment = 100 * kBlock, .in_part = 1},
              Pipelining{.segment = kBlock, .in_part = 1, .step_by_step = true}}) {
          if (how.segment < kBlock && blocks > ranks) continue;  // it divides single blocks only
          const BlockRange range{.count = blocks * kBlock, .first_block = first_block};
          std::vector<RingPlan> plans;
          for (int rank = 0; rank < ranks; ++rank)
            plans.push_back(ring_plan(rank, ranks, range, how));
          for (int rank = 0; rank < ranks; ++rank) {
            const RingPlan& plan = plans[static_cast<std::size_t>(rank)];
            const RingPlan& left = plans[static_cast<std::size_t>((rank + ranks - 1) % ranks)];
            std::vector<int> values(plan.segments.size()), sums(plan.segments.size());
            std::vector<Segment> sent, received;
            for (std::size_t i = 0; i < plan.moves.size(); ++i) {
              const Move& m = plan.moves[i];
              CHECK(m.awaits >= i);
              if (!how.step_by_step) CHECK(m.awaits == i);
              CHECK(plan.moves[m.awaits].step == m.step);
              values[m.segment] += !m.receives || m.adds;
              sums[m.segment] += m.completes;
              CHECK(m.step <= 2 * (ranks - 1));
              CHECK(m.adds == (m.step > 0 && m.step < ranks));
              if (m.completes && (m.adds || !m.receives)) CHECK(m.share == rank);
              const Segment& s = plan.segments[m.segment];
              if (s.count > 0) CHECK(owner(first_block + s.first / kBlock, ranks) == m.share);
              if (m.receives) received.push_back(s);
            }
            // Every segment's values are used once, and its sum is complete once.
            CHECK(std::ranges::all_of(values, [](int n) { return n == 1; }));
            CHECK(std::ranges::all_of(sums, [](int n) { return n == 1; }));
            for (const Move& m : left.moves)
              if (m.sends) sent.push_back(left.segments[m.segment]);
            CHECK(std::ranges::equal(sent, received, [](const Segment& a, const Segment& b) {
              return a.first == b.first && a.count == b.count;
            }));
          }
        }
}

TEST_CASE("ring plan: segments cover every element once") {
  for (const std::int64_t count : {0, 1, 2047, 2048, 2049, 100'001, 600'000})
    for (const int ranks : {1, 2, 3, 7})
      for (const bool divides : {true, false})
        for (const std::size_t latency : {0, 3'300})
          for (const std::int64_t first_block : {0, 4}) {
            const BlockRange range{.count = count, .first_block = first_block};
            const auto how = pipelining(range, ranks, kBlock * sizeof(float), divides,
                                        {.bytes_in_flight = 100'000, .latency_bytes = latency});
            std::vector<char> seen(static_cast<std::size_t>(count));
            for (const Segment& s : ring_plan(0, ranks, range, how).segments) {
              if (!divides) CHECK(s.first % kBlock == 0);
              s.for_each_run(kBlock, [&](std::int64_t first, std::int64_t, std::int64_t n) {
                for (std::int64_t i = first; i < first + n; ++i)
                  ++seen[static_cast<std::size_t>(i)];
              });
            }
            CHECK(std::ranges::all_of(seen, [](char n) { return n == 1; }));
          }
}

TEST_CASE("ring plan: a step by step sum awaits the last message of each step") {
  const BlockRange range{.count = 24 * kBlock};
  const RingPlan plan =
      ring_plan(1, 4, range, {.segment = 2 * kBlock, .in_part = 3, .step_by_step = true});
  REQUIRE(plan.moves.size() == 7 * 3);
  for (std::size_t i = 0; i < plan.moves.size(); ++i) CHECK(plan.moves[i].awaits == i / 3 * 3 + 2);
}

// This implies that a bucket takes a + bM wherever it begins. All ranks send equally much, give or
// take one block in each half, in as many messages as for any other bucket of that size.
TEST_CASE("ring plan: a bucket costs the same wherever it begins") {
  for (const int ranks : {2, 4, 8})
    for (const std::int64_t blocks : {1, 2, 3, 8, 11, 64, 130, 1000, 8192})
      for (const std::size_t latency : {0, 8'000}) {
        std::optional<std::size_t> messages;
        for (const std::int64_t first_block : {0, 1, 7, 1234}) {
          const BlockRange range{.count = blocks * kBlock, .first_block = first_block};
          const auto how = pipelining(range, ranks, kBlock * sizeof(float), true,
                                      {.bytes_in_flight = 1 << 20, .latency_bytes = latency});
          std::size_t all = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            const RingPlan plan = ring_plan(rank, ranks, range, how);
            std::int64_t sent = 0;
            for (const Move& m : plan.moves)
              if (m.sends && plan.segments[m.segment].count > 0)
                ++all, sent += plan.segments[m.segment].count;
            const double even = 2.0 * (ranks - 1) / ranks * static_cast<double>(range.count);
            CHECK(std::abs(static_cast<double>(sent) - even) <= 2 * kBlock);
          }
          if (!messages) messages = all;
          CHECK(all == *messages);
          // For a sum that takes a + bM, shares of up to 8 blocks take one message per step, and a
          // second one if they are longer than others. (With fewer blocks than ranks, a block is
          // sent in pieces.)
          if (blocks <= 8 * ranks && latency > 0 && blocks >= ranks)
            CHECK(all <= static_cast<std::size_t>(2 * 2 * (ranks - 1) * ranks));
        }
      }
}
