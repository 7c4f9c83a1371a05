// Gradients that are not in host memory: copying them to the host and back changes no bit.
#include "tensor/staging.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/random.h"
#include "dist/host_staging.h"
#include "dist/launch.h"
#include "dist/param_server/server.h"
#include "dist/ring_allreduce/ring_allreduce.h"
#include "dist/ring_allreduce/same_node.h"
#include "dist/strategies.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/dist/ranks.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Two parameters of several blocks, and gradients that depend on rank, iteration and weights.
struct Net {
  explicit Net(const Device& device) : set({{"a", &a}, {"b", &b}}, device) {}

  void backward(std::int64_t t, int rank) {
    const auto weights = set.values().span<float>(), gradients = set.gradients().span<float>();
    for (std::size_t i = 0; i < weights.size(); ++i)
      gradients[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t);
  }

  Parameter a{{30, 1000}, gradient(30'000, 7)}, b{{4097}, gradient(4097, 8)};
  ParameterSet set;
  Sgd sgd{set, {.schedule = {.base = 0.1}, .momentum = 0.9}};
  Spans spans;
};

struct Run {
  std::string algo;
  int pipe_k = 1;
  int servers = 0;
  std::int64_t warmup = 0;
};

// The weights of rank 0 after some iterations of `workers` workers.
std::vector<float> train(const Run& run, const Compressor& compressor, int workers,
                         Device (*make_device)()) {
  constexpr std::int64_t kIterations = 6;
  std::vector<float> weights;
  run_on_ranks({.app = "test", .ranks = workers + run.servers}, [&](Communication& communication) {
    const int rank = communication.transport().rank();
    if (rank >= workers) {
      Net net(cpu_device());
      return communication.call([&] {
        std::vector<int> peers(static_cast<std::size_t>(workers));
        std::iota(peers.begin(), peers.end(), 0);
        ParameterServer(communication.transport(), peers, run.servers, net.set, net.sgd, compressor,
                        net.spans)
            .serve(1, kIterations);
      });
    }
    Net net(make_device());
    const auto strategy =
        make_strategy(run.algo, {.parameters = net.set,
                                 .optimizer = net.sgd,
                                 .spans = net.spans,
                                 .communication = communication,
                                 .compressor = compressor,
                                 .workers = workers,
                                 .options = {{"--servers", run.servers}, {"--pipe-k", run.pipe_k}},
                                 .warmup_iterations = run.warmup});
    try {
      for (std::int64_t t = 1; t <= kIterations; ++t) {
        strategy->before_step(t);
        net.backward(t, rank);
        strategy->after_backward(t);
      }
      strategy->finish();
    } catch (const std::exception& e) {
      communication.stop(e.what());
      throw;
    }
    if (rank == 0) weights = net.set.values().to_host<float>();
  });
  return weights;
}

}  // namespace

TEST_CASE("staging: host values are packed once, even if their segments are packed together") {
  const auto compressor = make_compressor("quant8");
  Spans spans;
  // The last three segments of the second one have 31, 32 and 31 blocks, so the first of them is
  // packed alone.
  const auto check = [&](std::int64_t count, HostStaging::Packs packs) {
    CAPTURE(count);
    CAPTURE((packs == HostStaging::Packs::rows));
    const std::vector<Segment> segments =
        ring_plan(2, 3, {.count = count}, {.segment = 32 * kBlock}).segments;
    const std::vector<float> values = gradient(count, 3);
    std::vector<float> replaced = values;
    HostStaging staging(*compressor, spans, packs);
    staging.begin(replaced, segments);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      staging.wait(i);
      segments[i].for_each_run(kBlock, [&](std::int64_t first, std::int64_t, std::int64_t n) {
        std::fill_n(replaced.begin() + first, n, 1e9F);  // as put() would
      });
    }
    std::size_t same = 0;
    for (std::size_t i = 0; i < segments.size(); ++i)
      same += std::ranges::equal(staging.packed(i).whole(),
                                 packed_on_host(*compressor, values, segments[i]));
    CHECK(same == segments.size());
  };
  for (const auto packs : {HostStaging::Packs::rows, HostStaging::Packs::segments})
    for (const std::int64_t count : {(3 * 40 + 1) * kBlock - 5, (3 * 64 - 2) * kBlock})
      check(count, packs);
}

TEST_CASE("staging: a device's sum has the same bits as a ring over host memory") {
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (const std::int64_t count : {0, 1, 7, 2047, 2048, 2049, 9'999, 80'003}) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(count);
        const auto sum_on = [&](Transport& t) {
          Spans spans;
          const AllReduce::Group group{t, ranks, *compressor, spans};
          std::vector<std::unique_ptr<AllReduce>> sums;
          sums.push_back(std::make_unique<RingAllReduce>(group, BlockRange{.count = count}));
          if (t.on_one_node())
            for (const std::size_t stretch : {2 << 20, 5000})  // at once, or in parts
              sums.push_back(
                  std::make_unique<SameNodeAllReduce>(group, BlockRange{.count = count}, stretch));
          auto expected = gradient(count, t.rank());
          sums[0]->sum(expected);

          for (const auto& sum : sums) {
            const Device device = fake_gpu();
            const auto staging =
                device.backend().make_staging(compressor->packing(), count, kBlock);
            for (int round = 0; round < 2; ++round) {  // the second one reuses it
              const Tensor values = Tensor::from(gradient(count, t.rank()), {count}, device);
              staging->begin(values, device.backend().record_event(), sum->segments(),
                             Staging::Fill::from_values);
              sum->sum(*staging);
              device.backend().wait_for(staging->finish());
              REQUIRE(same_bits(values.to_host<float>(), expected));
              // On one node, sums are read from another rank's memory.
              if (ranks > 1 && count > ranks * kBlock)
                REQUIRE((dynamic_cast<FakeStaging&>(*staging).segments_borrowed() > 0) ==
                        (sum != sums[0]));
            }
          }
        };
        for (const std::size_t in_flight : {2 << 20, 1})  // at once, or in parts
          for (const char* link : {"none", "100gbit/10us"}) {
            ThreadsNetwork network(ranks, in_flight);
            on_ranks(network, sum_on, parse_link(link));
          }
      }
  }
}

TEST_CASE("staging: every strategy gives the same weights on a device as on the CPU") {
  constexpr int kWorkers = 3;
  const auto cpu = [] { return cpu_device(); };
  for (const std::string& name : compressor_names()) {
    const auto compressor = make_compressor(name);
    const auto d_sync = train({"d-sync"}, *compressor, kWorkers, cpu);
    CAPTURE(name);
    CHECK(same_bits(train({"d-sync"}, *compressor, kWorkers, fake_gpu), d_sync));
    CHECK(same_bits(train({"pipe-sgd"}, *compressor, kWorkers, fake_gpu), d_sync));
    for (const int servers : {1, 2}) {
      const Run ps_sync{.algo = "ps-sync", .servers = servers};
      CHECK(same_bits(train(ps_sync, *compressor, kWorkers, cpu), d_sync));
      CHECK(same_bits(train(ps_sync, *compressor, kWorkers, fake_gpu), d_sync));
    }
    for (const int k : {2, 3})
      for (const std::int64_t warmup : {0, 2}) {
        const Run pipe_sgd{.algo = "pipe-sgd", .pipe_k = k, .warmup = warmup};
        CHECK(same_bits(train(pipe_sgd, *compressor, kWorkers, fake_gpu),
                        train(pipe_sgd, *compressor, kWorkers, cpu)));
      }
  }
}
