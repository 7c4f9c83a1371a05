// PS-Sync with local aggregation: what the sums are, and how many bytes leave a node.
// conformance_test.cpp has what all algorithms have in common: failures, NaN and checkpoints.
#include "dist/param_server/node_sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "dist/block.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kIterations = 5;
constexpr std::int64_t kCount = 5008;  // a multiple of 16: nothing is added to align it
using Values = std::vector<float>;

Device cpu() { return cpu_device(); }

// Weights with momenta, and a gradient that depends on the weights, the rank and the iteration.
struct Net {
  Net(const Device& device, std::int64_t count)
      : weight({count}, gradient(count, 7)), set({{"weight", &weight}}, device) {}

  Values values() const { return set.values().to_host<float>(); }
  Values gradient_of(std::int64_t t, int rank) const {
    const Values scatter = gradient(set.values().count(), static_cast<int>(100 * t) + rank);
    Values result = values();
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = 0.1F * result[i] + scatter[i];
    return result;
  }
  void set_gradient(const Values& values) {
    Tensor(set.gradients()).copy_from_host(std::span(values));
  }

  Parameter weight;
  ParameterSet set;
  Sgd sgd{set, {.schedule = {.base = 0.1}, .momentum = 0.9, .weight_decay = 0.02}};
  Spans spans;
};

struct Job {
  int workers = 5, ranks_per_node = 2;
  std::int64_t servers = 1;
  std::int64_t count = kCount;
  bool nodes_first = true;
  const Compressor* compressor = nullptr;
  Device (*device)() = cpu;
};

struct Result {
  std::vector<Values> weights;                     // by worker
  std::vector<std::int64_t> pushed_by, pulled_by;  // bytes that each rank has sent
};

Result run(const Job& job) {
  const StrategyInfo& algo = strategy_named("ps-sync");
  const int ranks = job.workers + static_cast<int>(job.servers);
  const std::vector<std::int64_t> none_sent(static_cast<std::size_t>(ranks));
  Result result{std::vector<Values>(static_cast<std::size_t>(job.workers)), none_sent, none_sent};
  const RankOptions options{.app = "test", .ranks = ranks, .ranks_per_node = job.ranks_per_node};
  run_on_ranks(options, [&](Communication& communication) {
    const int rank = communication.transport().rank();
    const auto own = static_cast<std::size_t>(rank);
    const bool works = rank < job.workers;
    Net net(works ? job.device() : cpu_device(), job.count);
    const StrategyContext context{
        .parameters = net.set,
        .optimizer = net.sgd,
        .spans = net.spans,
        .communication = communication,
        .compressor = *job.compressor,
        .workers = job.workers,
        .options = {{"--servers", job.servers}, {"--aggregate", job.nodes_first ? 1 : 0}}};
    if (works) {
      const auto strategy = algo.make(context);
      for (std::int64_t t = 1; t <= kIterations; ++t) {
        strategy->before_step(t);
        net.set_gradient(net.gradient_of(t, rank));
        strategy->after_backward(t);
      }
      strategy->finish();
      result.weights[own] = net.values();
    } else {
      communication.call([&] { algo.make_server(context)->serve(1, kIterations); });
    }
    communication.call([&] {
      result.pushed_by[own] = communication.transport().bytes_sent(Tag::push);
      result.pulled_by[own] = communication.transport().bytes_sent(Tag::pull);
    });
  });
  return result;
}

// What arrives if these values are sent.
Values sent(const Compressor& compressor, const Values& values) {
  std::vector<std::byte> packed(compressor.bytes(std::ssize(values)));
  compressor.compress(values, packed);
  Values unpacked(values.size());
  compressor.decompress(packed, unpacked);
  return unpacked;
}

Values sum_of(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// One process does what all ranks do. Within a node: f32, in the order of the ranks. Between nodes:
// block by block, in the order of a ring of the nodes, and every partial sum is compressed.
Values reference(const Job& job) {
  Net net(cpu_device(), job.count);
  for (std::int64_t t = 1; t <= kIterations; ++t) {
    std::vector<Values> nodes;
    for (int rank = 0; rank < job.workers; ++rank) {
      const Values own = net.gradient_of(t, rank);
      if (rank % job.ranks_per_node == 0)
        nodes.push_back(own);
      else
        nodes.back() = sum_of(nodes.back(), own);
    }
    Values all;
    const std::int64_t count = net.set.values().count();  // that of the net, rounded up
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const auto owner = static_cast<std::size_t>(first / kBlock) % nodes.size();
      const auto block_of = [&](std::size_t hop) {
        const Values& node = nodes[(owner + hop) % nodes.size()];
        const auto end = std::min(count, first + kBlock);
        return sent(*job.compressor, Values(node.begin() + first, node.begin() + end));
      };
      Values sum = block_of(1);
      for (std::size_t hop = 2; hop <= nodes.size(); ++hop)
        sum = sent(*job.compressor, sum_of(sum, block_of(hop)));
      all.insert(all.end(), sum.begin(), sum.end());
    }
    net.set_gradient(all);
    net.sgd.update(t);
  }
  return net.values();
}

template <class Check>
void for_all_compressors(const Check& check) {
  for (const std::string& name : compressor_names()) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    check(*compressor);
  }
}

std::int64_t sum(std::span<const std::int64_t> all) {
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("nodes first: the weights are those of one process that adds in the same order") {
  for_all_compressors([](const Compressor& compressor) {
    for (const auto& [workers, ranks_per_node] :
         {std::pair(1, 2), std::pair(2, 2), std::pair(4, 2), std::pair(5, 2), std::pair(5, 3),
          std::pair(6, 3), std::pair(3, 8)})
      for (const std::int64_t count : {1, 5000, 200'000})
        for (const std::int64_t servers : {1, 3})
          for (Device (*device)() : {cpu, fake_gpu}) {
            CAPTURE(workers);
            CAPTURE(ranks_per_node);
            CAPTURE(count);
            CAPTURE(servers);
            const Job job{.workers = workers,
                          .ranks_per_node = ranks_per_node,
                          .servers = servers,
                          .count = count,
                          .compressor = &compressor,
                          .device = device};
            if (count > 5000 && (device != cpu || workers < 4)) continue;
            if (count > 5000 && kSanitized && servers == 1) continue;
            const Values expected = reference(job);
            for (const Values& weights : run(job).weights) CHECK(same_bits(weights, expected));
          }
  });
}

TEST_CASE("nodes first: with one rank per node, the servers add alone, to the same bits") {
  for_all_compressors([](const Compressor& compressor) {
    Job job{.ranks_per_node = 1, .servers = 2, .compressor = &compressor};
    const Values first = run(job).weights.back();
    job.nodes_first = false;
    CHECK(same_bits(first, run(job).weights.back()));
    // On nodes they add in another order.
    job.nodes_first = true;
    job.ranks_per_node = 2;
    CHECK(!same_bits(first, run(job).weights.back()));
  });
}

// Table I of Ko et al.: 2MN/l, with N workers on nodes of l and M bytes of gradients and weights.
TEST_CASE("nodes first: a gradient leaves each node once, and the weights enter it once") {
  const auto none = make_none();
  for (const auto& [workers, ranks_per_node, nodes] :
       {std::tuple(6, 1, 6), std::tuple(6, 2, 3), std::tuple(6, 3, 2), std::tuple(5, 2, 3),
        std::tuple(4, 4, 1)})
    for (const std::int64_t servers : {1, 2}) {
      CAPTURE(workers);
      CAPTURE(ranks_per_node);
      CAPTURE(servers);
      const Job job{.workers = workers,
                    .ranks_per_node = ranks_per_node,
                    .servers = servers,
                    .compressor = none.get()};
      const Result result = run(job);
      const std::int64_t m = kIterations * job.count * static_cast<std::int64_t>(sizeof(float));
      std::int64_t to_servers = 0;
      for (int rank = 0; rank < workers; rank += ranks_per_node)
        to_servers += result.pushed_by[static_cast<std::size_t>(rank)];
      const std::int64_t from_servers =
          sum(std::span(result.pulled_by).subspan(static_cast<std::size_t>(workers)));
      CHECK(to_servers + from_servers == 2 * m * nodes);
      // Within the nodes, the other workers send their gradients and receive the weights.
      CHECK(sum(result.pushed_by) - to_servers == m * (workers - nodes));
      CHECK(sum(result.pulled_by) - from_servers == m * (workers - nodes));
    }
}

TEST_CASE("nodes first: compression applies to what leaves a node") {
  const auto trunc16 = make_trunc16();
  const Result result = run({.workers = 4, .compressor = trunc16.get()});
  const std::int64_t m = kIterations * kCount * 4;
  CHECK(result.pushed_by == std::vector<std::int64_t>{m / 2, m, m / 2, m, 0});
  CHECK(result.pulled_by == std::vector<std::int64_t>{m, 0, m, 0, 2 * m});
}
