#include "dist/ring_allreduce/ring_allreduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "base/random.h"
#include "base/thread_pool.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/dist/ranks.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// The sum as the definition says: block by block, from the owner's neighbour round to the owner,
// compressed after every addition, each contribution compressed first.
std::vector<float> reference(const Compressor& c, std::int64_t count, int ranks) {
  std::vector<std::vector<float>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(gradient(count, rank));
    round_to_compressed(c, parts.back());
  }
  std::vector<float> sum(static_cast<std::size_t>(count));
  const Cut cut(count, ranks);
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto block_of = [&](std::vector<float>& all) {
      return std::span(all).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(std::min(kBlock, count - begin)));
    };
    const auto block = block_of(sum);
    const int owner = cut.share_of_element(begin);
    for (int hop = 1; hop <= ranks; ++hop) {
      const auto part = block_of(parts[static_cast<std::size_t>((owner + hop) % ranks)]);
      for (std::size_t i = 0; i < block.size(); ++i)
        block[i] = hop == 1 ? part[i] : block[i] + part[i];
      round_to_compressed(c, block);
    }
  }
  return sum;
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

TEST_CASE(
    "ring parts: all segments in their order, enough in each, none longer than the one before") {
  for (std::size_t all = 0; all <= 100; ++all)
    for (std::size_t enough = 1; enough <= 12; ++enough) {
      const auto parts = ring_parts(all, enough);
      std::size_t next = 0, before = all;
      for (const RingPart& part : parts) {
        CHECK(part.first == next);
        CHECK(part.size >= std::min(all, enough));
        CHECK(part.size <= before);
        next += part.size;
        before = part.size;
      }
      CHECK(next == all);
      CHECK(parts.size() == (all == 0 ? 0 : std::max<std::size_t>(1, all / enough)));
      if (!parts.empty() && all >= enough * enough) CHECK(parts[0].size <= parts.back().size + 1);
    }
}

TEST_CASE("cut: segments of all shares cover every element once, in whole blocks") {
  for (const std::int64_t count : {0, 1, 2047, 2048, 2049, 100'001, 5'000'000})
    for (const int shares : {1, 2, 3, 7}) {
      const Cut cut(count, shares);
      std::vector<char> seen(static_cast<std::size_t>(count));
      for (int share = 0; share < shares; ++share)
        for (std::int64_t i = 0; i < cut.segments_of_share(share); ++i) {
          const auto segment = cut.of(std::span(seen), cut.segment_of_share(share, i));
          CHECK(!segment.empty());
          CHECK((segment.data() - seen.data()) % kBlock == 0);
          CHECK(cut.share_of_element(segment.data() - seen.data()) == share);
          CHECK(cut.share_of_element(segment.data() - seen.data() + std::ssize(segment) - 1) ==
                share);
          for (char& s : segment) ++s;
        }
      CHECK(std::all_of(seen.begin(), seen.end(), [](char n) { return n == 1; }));
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

TEST_CASE("ring all-reduce: the same bits where a gradient goes round in parts") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 2; ranks <= 5; ++ranks)
      for (const std::int64_t blocks : {13, 22, 31, 400})
        for (const std::size_t in_flight : {1, 30'000})
          for (const char* link : {"none", "100gbit/10us"}) {
            // Segments of one block each; for two ranks also of several.
            if (blocks == 400 && ranks > 2) continue;
            CAPTURE(name);
            CAPTURE(ranks);
            CAPTURE(blocks);
            const std::int64_t count = blocks * kBlock - 5;
            const auto expected = reference(*compressor, count, ranks);
            std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
            ThreadsNetwork network(ranks, in_flight);
            on_ranks(
                network,
                [&](Transport& t) {
                  Spans spans;
                  RingAllReduce ring(t, ranks, *compressor, spans);
                  auto& values = results[static_cast<std::size_t>(t.rank())];
                  for (int round = 0; round < 2; ++round) {
                    values = gradient(count, t.rank());
                    ring.sum(values);
                  }
                },
                parse_link(link));
            for (const auto& result : results) REQUIRE(same_bits(result, expected));
          }
  }
}

TEST_CASE("ring all-reduce: helpers do not change the bits") {
  for (const std::string& name : compressor_names()) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    const std::int64_t count = 300'003;  // segments of several parts
    const auto expected = reference(*compressor, count, 4);
    std::vector<std::vector<float>> results(4);
    on_ranks(4, [&](Transport& t) {
      ThreadPool helpers(3);
      t.set_helpers(&helpers);
      Spans spans;
      RingAllReduce ring(t, 4, *compressor, spans);
      auto& values = results[static_cast<std::size_t>(t.rank())];
      for (int round = 0; round < 3; ++round) {
        values = gradient(count, t.rank());
        ring.sum(values);
      }
    });
    for (const auto& result : results) CHECK(same_bits(result, expected));
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
        CHECK(spans.seconds(SpanKind::sum) > 0);
        CHECK(spans.seconds(SpanKind::compress) == 0);  // there is none
      },
      parse_link("10gbit/10us"));
}

TEST_CASE("ring all-reduce: each rank sends 2(p-1)/p of what compression leaves") {
  constexpr std::int64_t kCount = 4 * 6 * kBlock;
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

TEST_CASE("ring all-reduce: a job that fails at any moment ends on every rank") {
  const auto compressor = make_compressor("none");
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int ranks = 2 + attempt % 3;
    ThreadsNetwork network(ranks, attempt % 2 == 0 ? 1 : 2 << 20);  // in parts, or at once
    std::atomic<int> sums = 0, ended = 0;
    {
      std::vector<Thread> threads;
      for (int rank = 0; rank < ranks; ++rank)
        threads.push_back(start_thread("rank", Work::waits, [&, rank] {
          const auto transport = network.transport(rank);
          Spans spans;
          RingAllReduce ring(*transport, ranks, *compressor, spans);
          const std::vector<float> ones(static_cast<std::size_t>(40 * kBlock), 1);
          const Device device = fake_gpu();
          const Tensor values = Tensor::from(ones, {std::ssize(ones)}, device);
          const auto staging =
              device.backend().make_staging(compressor->packing(), values.count(), kBlock);
          const auto sum = [&] {
            try {
              if (attempt % 4 < 2) {
                ring.sum(values.span<float>());
              } else {  // where neighbours borrow sums from each other
                staging->begin(values, device.backend().record_event(),
                               ring.segments(values.count()));
                ring.sum(*staging);
                staging->finish();
              }
              ++sums;
            } catch (const JobFailed&) {
              return false;
            }
            return true;
          };
          while (sum()) {
          }
          try {  // what was queued behind it
            ring.sum(*staging);
          } catch (const JobFailed&) {
            ++ended;
          }
        }));
      while (sums < attempt % 10) std::this_thread::yield();
      network.fail("enough");
    }
    CHECK(ended == ranks);
  }
}

TEST_CASE("ring all-reduce: a device that fails on one rank ends the sum on every rank") {
  struct Fails : FakeStaging {
    Fails(std::int64_t count, int calls)
        : FakeStaging(make_compressor("none"), count, true), calls_left(calls) {}
    void wait(std::int64_t segment) override {
      one_call();
      FakeStaging::wait(segment);
    }
    void put_borrowed(std::int64_t segment, std::span<const std::byte> bytes) override {
      one_call();
      FakeStaging::put_borrowed(segment, bytes);
    }
    void one_call() {
      if (calls_left-- == 0) throw SystemError("the device has failed");
    }
    int calls_left;
  };
  const auto compressor = make_compressor("none");
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (int calls = 0; calls < 2 * 8 * ranks; ++calls) {  // each segment comes and is put
      const std::int64_t count = 8 * ranks * kBlock;       // segments of one block
      CAPTURE(ranks);
      CAPTURE(calls);
      ThreadsNetwork network(ranks, calls % 2 == 0 ? 1 : 2 << 20);  // in parts, or at once
      std::atomic<int> failed = 0, ended = 0;
      {
        std::vector<Thread> threads;
        for (int rank = 0; rank < ranks; ++rank)
          threads.push_back(start_thread("rank", Work::waits, [&, rank] {
            const auto transport = network.transport(rank);
            Spans spans;
            RingAllReduce ring(*transport, ranks, *compressor, spans);
            const Device device = fake_gpu();
            const Tensor values = Tensor::zeros({count}, Dtype::f32, device);
            Fails staging(count, rank == 0 ? calls : 1000);
            staging.begin(values, device.backend().record_event(), ring.segments(count));
            try {
              ring.sum(staging);
            } catch (const JobFailed&) {
              ++ended;
            } catch (const SystemError&) {
              ++failed;
            }
          }));
      }
      CHECK(failed == 1);
      CHECK(ended == ranks - 1);
    }
}
