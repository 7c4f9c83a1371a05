#include "dist/ring_allreduce/ring_allreduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "base/random.h"
#include "base/thread_pool.h"
#include "base/virtual_time.h"
#include "dist/ring_allreduce/same_node.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/dist/ranks.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// The sum by its definition. Each contribution is compressed. Then each block is added from the
// owner's right neighbour round to the owner, and compressed after every addition.
std::vector<float> reference(const Compressor& c, std::int64_t count, int ranks) {
  std::vector<std::vector<float>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(gradient(count, rank));
    round_to_compressed(c, parts.back());
  }
  std::vector<float> sum(static_cast<std::size_t>(count));
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto block_of = [&](std::vector<float>& all) {
      return std::span(all).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(std::min(kBlock, count - begin)));
    };
    const auto block = block_of(sum);
    for (int hop = 1; hop <= ranks; ++hop) {
      const int rank = (owner(begin / kBlock, ranks) + hop) % ranks;
      const auto part = block_of(parts[static_cast<std::size_t>(rank)]);
      for (std::size_t i = 0; i < block.size(); ++i)
        block[i] = hop == 1 ? part[i] : block[i] + part[i];
      round_to_compressed(c, block);
    }
  }
  return sum;
}

// Both implementations.
using Make = std::unique_ptr<AllReduce> (*)(const AllReduce::Group&, const BlockRange&);
std::unique_ptr<AllReduce> ring(const AllReduce::Group& group, const BlockRange& range) {
  return std::make_unique<RingAllReduce>(group, range);
}
std::unique_ptr<AllReduce> same_node(const AllReduce::Group& group, const BlockRange& range) {
  return std::make_unique<SameNodeAllReduce>(group, range, 2 << 20);
}
std::unique_ptr<AllReduce> in_parts(const AllReduce::Group& group, const BlockRange& range) {
  return std::make_unique<SameNodeAllReduce>(group, range, 8000);
}

std::vector<float> part_of(const std::vector<float>& all, const BlockRange& range) {
  const auto begin = all.begin() + range.first_block * kBlock;
  return {begin, begin + range.count};
}

}  // namespace

TEST_CASE("all-reduce: has the bits of the definition on every rank, for all sizes") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (const std::int64_t count : {0, 1, 7, 2047, 2048, 2049, 200'003}) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(count);
        const auto expected = reference(*compressor, count, ranks);
        for (const Make make : {ring, same_node}) {
          std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
          on_ranks(ranks, [&](Transport& t) {
            Spans spans;
            const auto sum = make({t, ranks, *compressor, spans}, {.count = count});
            auto& values = results[static_cast<std::size_t>(t.rank())];
            for (int round = 0; round < 2; ++round) {  // the second one reuses it
              values = gradient(count, t.rank());
              sum->sum(values);
            }
          });
          for (const auto& result : results) REQUIRE(same_bits(result, expected));
        }
      }
  }
}

TEST_CASE("all-reduce: in virtual time, the ring takes as long as its formula says" *
          doctest::skip(!has_virtual_time())) {
  // One message per step: each takes a latency, a frame, and its bytes.
  for (const int ranks : {2, 5, 64}) {
    CAPTURE(ranks);
    const LinkSpeed link{.bytes_per_s = 1e9, .latency_s = 50e-6};
    const auto compressor = make_compressor("none");
    const std::int64_t count = ranks * kBlock;
    const auto expected = reference(*compressor, count, ranks);
    in_virtual_time([&] {
      on_ranks(
          ranks,
          [&](Transport& t) {
            Spans spans;
            auto values = gradient(count, t.rank());
            RingAllReduce sum(
                {.transport = t, .ranks = ranks, .compressor = *compressor, .spans = spans},
                {.count = count});
            const auto begin = Clock::now();
            sum.sum(values);
            const double step = 50e-6 + (kFrameBytes + kBlock * sizeof(float)) / 1e9;
            CHECK(seconds_between(begin, Clock::now()) ==
                  doctest::Approx(2 * (ranks - 1) * step).epsilon(1e-6));
            CHECK(same_bits(values, expected));
          },
          link);
    });
  }
}

TEST_CASE("all-reduce: a bucket has the same bits as in the whole gradient, at any offset") {
  constexpr std::int64_t kCount = 37 * kBlock + 77;
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (const int ranks : {1, 2, 3, 5, 8}) {
      CAPTURE(name);
      CAPTURE(ranks);
      const auto whole = reference(*compressor, kCount, ranks);
      for (const Make make : {ring, same_node})
        for (const char* link : {"none", "100gbit/10us"}) {
          if (make == same_node && std::string(link) != "none") continue;
          on_ranks(
              ranks,
              [&](Transport& t) {
                Spans spans;
                const auto own = gradient(kCount, t.rank());
                for (const auto& [first, blocks] :
                     std::vector<std::pair<std::int64_t, std::int64_t>>{
                         {0, 1}, {1, 1}, {5, 2}, {2, 3}, {7, 11}, {13, 25}, {37, 1}}) {
                  const BlockRange range{
                      .count = std::min(blocks * kBlock, kCount - first * kBlock),
                      .first_block = first};
                  auto values = part_of(own, range);
                  const AllReduce::Group group{.transport = t,
                                               .ranks = ranks,
                                               .compressor = *compressor,
                                               .spans = spans,
                                               .linear = true};
                  make(group, range)->sum(values);
                  REQUIRE(same_bits(values, part_of(whole, range)));
                }
              },
              parse_link(link));
        }
    }
  }
}

TEST_CASE("all-reduce: a gradient sent in parts has the same bits") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 2; ranks <= 5; ++ranks)
      for (const std::int64_t blocks : {13, 22, 31, 400})
        for (const std::size_t in_flight : {1, 30'000})
          for (const char* link : {"none", "1000gbit/0us"}) {
            // Segments have one block each; for two ranks also several.
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
                  RingAllReduce sum({t, ranks, *compressor, spans}, {.count = count});
                  auto& values = results[static_cast<std::size_t>(t.rank())];
                  for (int round = 0; round < 2; ++round) {
                    values = gradient(count, t.rank());
                    sum.sum(values);
                  }
                },
                parse_link(link));
            for (const auto& result : results) REQUIRE(same_bits(result, expected));
          }
  }
}

TEST_CASE("all-reduce: many parts on one node have the same bits") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 1; ranks <= 6; ++ranks)
      for (const std::int64_t blocks : {5, 23, 60}) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(blocks);
        const std::int64_t count = blocks * kBlock - 5;
        const auto expected = reference(*compressor, count, ranks);
        on_ranks(ranks, [&](Transport& t) {
          Spans spans;
          SameNodeAllReduce sum({t, ranks, *compressor, spans}, {.count = count}, 4000);
          for (int round = 0; round < 2; ++round) {
            auto values = gradient(count, t.rank());
            sum.sum(values);
            REQUIRE(same_bits(values, expected));
          }
        });
      }
  }
}

TEST_CASE("all-reduce: helpers do not change the bits") {
  for (const std::string& name : compressor_names())
    for (const Make make : {ring, same_node}) {
      CAPTURE(name);
      const auto compressor = make_compressor(name);
      const std::int64_t count = 300'003;  // segments are long enough to share
      const auto expected = reference(*compressor, count, 4);
      std::vector<std::vector<float>> results(4);
      on_ranks(4, [&](Transport& t) {
        ThreadPool helpers(3);
        t.set_helpers(&helpers);
        Spans spans;
        const auto sum = make({t, 4, *compressor, spans}, {.count = count});
        auto& values = results[static_cast<std::size_t>(t.rank())];
        for (int round = 0; round < 3; ++round) {
          values = gradient(count, t.rank());
          sum->sum(values);
        }
      });
      for (const auto& result : results) CHECK(same_bits(result, expected));
    }
}

TEST_CASE("ring all-reduce: concurrent sums do not take each other's messages") {
  const auto compressor = make_none();
  constexpr std::int64_t kLong = 60 * kBlock + 9, kShort = 7 * kBlock;
  for (int ranks = 2; ranks <= 5; ++ranks)
    for (const std::size_t in_flight : {std::size_t{1}, ThreadsNetwork::kBytesPerCore}) {
      ThreadsNetwork network(ranks, in_flight);
      on_ranks(network, [&](Transport& t) {
        Spans spans;
        auto a = gradient(kLong, t.rank()), b = gradient(kShort, t.rank());
        RingAllReduce ring_a({t, ranks, *compressor, spans, 0}, {.count = kLong});
        RingAllReduce ring_b({t, ranks, *compressor, spans, 1}, {.count = kShort});
        HostStaging host_a(*compressor, spans), host_b(*compressor, spans);
        host_a.begin(a, ring_a.segments());
        host_b.begin(b, ring_b.segments());
        // Ranks start the sums in different order and advance any sum that can.
        RingAllReduce* under_way[] = {&ring_a, &ring_b};
        (t.rank() % 2 == 0 ? ring_a : ring_b).start(t.rank() % 2 == 0 ? host_a : host_b);
        (t.rank() % 2 == 0 ? ring_b : ring_a).start(t.rank() % 2 == 0 ? host_b : host_a);
        if (t.rank() % 2 == 1) std::swap(under_way[0], under_way[1]);
        std::vector<RingAllReduce*> left(std::begin(under_way), std::end(under_way));
        while (!left.empty()) {
          std::vector<Request*> any;
          for (RingAllReduce* r : left) any.push_back(&r->awaited());
          t.await_any(any, Patience::until_timeout);
          std::erase_if(left,
                        [&](RingAllReduce* r) { return t.done(r->awaited()) && !r->advance(); });
        }
        CHECK(same_bits(a, reference(*compressor, kLong, ranks)));
        CHECK(same_bits(b, reference(*compressor, kShort, ranks)));
      });
    }
}

TEST_CASE("all-reduce: sums different counts in turn, over a link") {
  const auto compressor = make_none();
  on_ranks(
      3,
      [&](Transport& t) {
        Spans spans;
        for (const std::int64_t count : {5000, 0, 70'000, 5000}) {
          auto values = gradient(count, t.rank());
          make_all_reduce({t, 3, *compressor, spans}, {.count = count})->sum(values);
          REQUIRE(same_bits(values, reference(*compressor, count, 3)));
        }
        CHECK(spans.seconds(SpanKind::communicate) > 0);
        CHECK(spans.seconds(SpanKind::sum) > 0);
        CHECK(spans.seconds(SpanKind::compress) == 0);  // no compression
      },
      parse_link("10gbit/10us"));
}

TEST_CASE("all-reduce: each rank sends 2(p-1)/p of the compressed bytes") {
  constexpr std::int64_t kCount = 4 * 6 * kBlock;
  for (const std::string& name : compressor_names())
    for (const Make make : {ring, same_node}) {
      const auto compressor = make_compressor(name);
      on_ranks(4, [&](Transport& t) {
        Spans spans;
        auto values = gradient(kCount, t.rank());
        make({t, 4, *compressor, spans}, {.count = kCount})->sum(values);
        CHECK(t.bytes_sent(Tag::ring) ==
              static_cast<std::int64_t>(2 * 3 * compressor->bytes(kCount / 4)));
      });
    }
}

TEST_CASE("all-reduce: NaN stays visible on every rank") {
  for (const std::string& name : compressor_names())
    for (const Make make : {ring, same_node}) {
      const auto compressor = make_compressor(name);
      on_ranks(3, [&](Transport& t) {
        Spans spans;
        auto values = gradient(10'000, t.rank());
        if (t.rank() == 1) values[5000] = std::numeric_limits<float>::quiet_NaN();
        make({t, 3, *compressor, spans}, {.count = 10'000})->sum(values);
        CHECK(std::isnan(values[5000]));
        CHECK(std::isfinite(values[0]));
      });
    }
}

TEST_CASE("all-reduce: a job that fails at any moment ends on every rank") {
  const auto compressor = make_compressor("none");
  for (int attempt = 0; attempt < 480; ++attempt) {
    const int ranks = 2 + attempt % 3;
    const Make make = attempt % 8 < 4 ? ring : attempt % 2 == 0 ? in_parts : same_node;
    ThreadsNetwork network(ranks, attempt % 2 == 0 ? 1 : 2 << 20);  // in parts, or at once
    std::atomic<int> sums = 0, ended = 0;
    const Thread failer = start_thread("fails", Work::waits, [&] {
      while (sums < attempt % 10) std::this_thread::yield();
      network.fail("enough");
    });
    on_ranks(network, [&](Transport& transport) {
      Spans spans;
      const std::vector<float> ones(static_cast<std::size_t>(40 * kBlock), 1);
      const auto all_reduce =
          make({transport, ranks, *compressor, spans}, {.count = std::ssize(ones)});
      const Device device = fake_gpu();
      const Tensor values = Tensor::from(ones, {std::ssize(ones)}, device);
      const auto staging =
          device.backend().make_staging(compressor->packing(), values.count(), kBlock);
      const auto sum = [&] {
        try {
          if (attempt % 4 < 2) {
            all_reduce->sum(values.span<float>());
          } else {  // a device, which on one node reads sums from their owner's memory
            staging->begin(values, device.backend().record_event(), all_reduce->segments(),
                           Staging::Fill::from_values);
            all_reduce->sum(*staging);
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
      std::vector<float> more(ones);
      try {  // a job that was queued after it
        all_reduce->sum(more);
      } catch (const JobFailed&) {
        ++ended;
      }
    });
    CHECK(ended == ranks);
  }
}

TEST_CASE("all-reduce: a device that fails on one rank ends the sum on every rank") {
  struct Fails : FakeStaging {
    Fails(std::int64_t count, int calls)
        : FakeStaging(make_compressor("none"), count), calls_left(calls) {}
    void wait(std::size_t segment) override {
      one_call();
      FakeStaging::wait(segment);
    }
    void put(std::size_t segment, const ConstPieces& bytes) override {
      one_call();
      FakeStaging::put(segment, bytes);
    }
    void one_call() {
      if (calls_left-- == 0) throw SystemError("the device has failed");
    }
    int calls_left;
  };
  const auto compressor = make_compressor("none");
  for (const Make make : {ring, same_node, in_parts})
    for (int ranks = 2; ranks <= 4; ++ranks)
      for (int calls = 0;; ++calls) {                   // until no call fails
        const std::int64_t count = 8 * ranks * kBlock;  // segments have one block
        CAPTURE(ranks);
        CAPTURE(calls);
        ThreadsNetwork network(ranks, calls % 2 == 0 ? 1 : 2 << 20);  // in parts, or at once
        std::atomic<int> failed = 0, ended = 0;
        on_ranks(network, [&](Transport& transport) {
          Spans spans;
          const auto sum = make({transport, ranks, *compressor, spans}, {.count = count});
          const Device device = fake_gpu();
          const Tensor values = Tensor::zeros({count}, Dtype::f32, device);
          Fails staging(count, transport.rank() == 0 ? calls : 1000);
          staging.begin(values, device.backend().record_event(), sum->segments(),
                        Staging::Fill::from_values);
          try {
            sum->sum(staging);
          } catch (const JobFailed&) {
            ++ended;
          } catch (const SystemError&) {
            ++failed;
          }
        });
        const int all_calls =
            2 * (make == same_node ? ranks : 8 * ranks);  // each segment is waited for and put
        CHECK(failed == (calls < all_calls ? 1 : 0));
        // In a ring, other ranks may already have all they need from the failing one.
        if (make != ring) CHECK(ended == (calls < all_calls ? ranks - 1 : 0));
        if (calls >= all_calls) break;
      }
}
