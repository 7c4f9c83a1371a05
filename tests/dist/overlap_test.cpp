// Communication during backward. Every synchronous algorithm of the table has the weights of
// d-sync, bit for bit: for random nets, random plans, every compressor, with and without a link,
// whatever the threads' timing. A rank that fails in the middle ends the job.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "base/random.h"
#include "dist/launch.h"
#include "dist/schedule/overlap.h"
#include "dist/strategies.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Parameters of random sizes, used and finished in random orders that are the same on all ranks. If
// `layers` is given, so many that all have a message of their own, and the order is the usual one.
class RandomNet {
 public:
  explicit RandomNet(std::uint64_t seed, std::size_t layers = 0) : random_(seed) {
    std::vector<ParameterSet::Named> named;
    const std::size_t count = layers > 0 ? layers : 1 + random_.below(8);
    for (std::size_t i = 0; i < count; ++i) {
      const bool small = layers == 0 && i % 2 == 0;
      const std::int64_t least = layers > 0 ? kBlock : 0;
      const auto size = least + static_cast<std::int64_t>(1 + random_.below(small ? 40 : 9000));
      parameters_.push_back(
          std::make_unique<Parameter>(Shape{size}, gradient(size, static_cast<int>(i))));
      named.push_back({fmt::format("p{}", i), parameters_.back().get()});
    }
    set.emplace(named, cpu_device());
    sgd.emplace(*set, SgdOptions{.schedule = {.base = 0.1}, .momentum = 0.9});
    use_ = set->trained();
    ready_.assign(use_.rbegin(), use_.rend());
    for (auto* order : {&use_, &ready_})
      for (std::size_t swaps = layers > 0 ? 0 : random_.below(3); swaps > 0; --swaps)
        std::swap((*order)[random_.below(count)], (*order)[random_.below(count)]);
  }

  // A plan that has nothing to do with times.
  MergePlan random_plan() {
    MergePlan plan;
    for (const Stage& stage : stages_of(*set, {ready_.begin(), ready_.end()})) {
      plan.layers.push_back({0, static_cast<double>(stage.range.count) * sizeof(float)});
      plan.names.push_back(stage.last->name);
    }
    for (std::size_t left = plan.layers.size(); left > 0; left -= plan.groups.back())
      plan.groups.push_back(1 + random_.below(left));
    return plan;
  }

  // `delay` comes before every call of a hook.
  template <class Delay>
  void step(std::int64_t t, int rank, Hooks& hooks, const Delay& delay) {
    for (Parameter* p : use_) delay(), hooks.before_use(*p);
    for (Parameter* p : ready_) {
      const auto weights = p->value.span<float>(), gradients = p->gradient.span<float>();
      for (std::size_t i = 0; i < weights.size(); ++i)
        gradients[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t);
      delay();
      hooks.on_grad_ready(*p);
    }
  }

  std::optional<ParameterSet> set;
  std::optional<Sgd> sgd;
  Spans spans;

 private:
  Random random_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Parameter*> use_, ready_;
};

// Yields or spins for a random while, so that ranks and threads meet in another order.
void delay(Random& random) {
  for (auto yields = random.below(3); yields > 0; --yields) std::this_thread::yield();
  std::atomic<int> spins = static_cast<int>(random.below(2) * random.below(3000));
  while (spins > 0) --spins;
}

struct Job {
  const StrategyInfo* algo;
  std::uint64_t seed;  // of the net, the plan and the delays
  const Compressor* compressor;
  int workers;
  LinkSpeed link = {};
  std::int64_t iterations = 11;  // wfbp and buckets switch to their plans after 9
  bool delays = true;
  std::size_t layers = 0;  // see RandomNet
  std::int64_t via = 0;    // --via or --push, modulo its choices
  // Called before each hook instead of a delay.
  std::function<void(int rank, std::int64_t t)> meddle = {};
};

StrategyOptions options_of(const Job& job) {
  StrategyOptions options;
  if (job.algo->has_option("--slice")) options["--slice"] = kBlock;
  for (const char* name : {"--via", "--push"})
    if (const StrategyOption* option = job.algo->option(name))
      options[name] = job.via % (option->most + 1);
  if (job.algo->servers(options) > 0) options["--servers"] = 2;
  return options;
}

StrategyContext context(const Job& job, RandomNet& net, Communication& communication) {
  return {.parameters = *net.set,
          .optimizer = *net.sgd,
          .spans = net.spans,
          .communication = communication,
          .compressor = *job.compressor,
          .workers = job.workers,
          .options = options_of(job)};
}

// The weights of each worker.
std::vector<std::vector<float>> run(const Job& job) {
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(job.workers));
  const int ranks = job.workers + job.algo->servers(options_of(job));
  run_on_ranks(
      {.app = "test", .ranks = ranks, .link = job.link}, [&](Communication& communication) {
        const int rank = communication.transport().rank();
        RandomNet net(job.seed, job.layers);
        StrategyContext c = context(job, net, communication);
        if (rank >= job.workers)
          return communication.call([&] { job.algo->make_server(c)->serve(1, job.iterations); });
        const MergePlan plan = net.random_plan();
        if (job.algo->keeps_plan) c.plan = &plan;
        const auto strategy = job.algo->make(c);
        Random random(job.seed + static_cast<std::uint64_t>(rank));
        try {
          for (std::int64_t t = 1; t <= job.iterations; ++t) {
            strategy->before_step(t);
            net.step(t, rank, *strategy, [&] {
              if (job.meddle)
                job.meddle(rank, t);
              else if (job.delays)
                delay(random);
            });
            strategy->after_backward(t);
          }
          strategy->finish();
          if (c.plan && rank == 0) CHECK(strategy->plan().merge->groups == plan.groups);
        } catch (const std::exception& e) {
          communication.stop(e.what());
          throw;
        }
        weights[static_cast<std::size_t>(rank)] = net.set->values().to_host<float>();
      });
  return weights;
}

}  // namespace

TEST_CASE("overlap: synchronous algorithms have d-sync's, for random nets, plans and timing") {
  const std::uint64_t first_seed = std::random_device()();
  CAPTURE(first_seed);
  std::uint64_t seed = first_seed;
  for (const std::string& compress : compressor_names())
    for (const int workers : {1, 2, 3, 4, 7})
      for (const std::string link : {"none", "10gbit/2us"}) {
        // With sanitizers, each number of workers has one of the links.
        if (kSanitized && (workers % 2 == 1) == (link == "none")) continue;
        const auto compressor = make_compressor(compress);
        ++seed;
        const Job reference{.algo = &strategy_named("d-sync"),
                            .seed = seed,
                            .compressor = compressor.get(),
                            .workers = workers,
                            .delays = false};
        const auto expected = run(reference);
        for (const StrategyInfo& algo : all_strategies()) {
          if (algo.family != Family::synchronous) continue;
          CAPTURE(algo.name);
          CAPTURE(compress);
          CAPTURE(workers);
          CAPTURE(link);
          CAPTURE(seed);
          Job job = reference;
          job.algo = &algo;
          job.link = parse_link(link);
          job.delays = true;
          job.via = static_cast<std::int64_t>(seed - first_seed);
          CAPTURE(job.via);
          const auto weights = run(job);
          for (int rank = 0; rank < workers; ++rank) {
            CAPTURE(rank);
            CHECK(same_bits(weights[static_cast<std::size_t>(rank)], expected[0]));
          }
        }
      }
}

// Ranks 0 and 2 hand over all their gradients of an iteration. Rank 1 has handed over none when it
// fails, so all their operations are open.
TEST_CASE("overlap: a rank that fails with twenty operations open is named, and none hangs") {
  constexpr std::size_t kLayers = 24;
  const auto compressor = make_none();
  for (const StrategyInfo& algo : all_strategies()) {
    if (algo.family != Family::synchronous) continue;
    for (const std::string link : {"none", "1gbit/20us"}) {
      CAPTURE(algo.name);
      CAPTURE(link);
      std::atomic<std::size_t> hooks = 0;  // that ranks 0 and 2 have come to in the last iteration
      const Job job{.algo = &algo,
                    .seed = 1,
                    .compressor = compressor.get(),
                    .workers = 3,
                    .link = parse_link(link),
                    .layers = kLayers,
                    .meddle = [&, uses = std::size_t{0}](int rank, std::int64_t t) mutable {
                      if (t < 8) return;
                      if (rank != 1) {
                        ++hooks;
                        return;
                      }
                      if (++uses <= kLayers) return;
                      // The last hook is called just after this.
                      while (hooks < 2 * 2 * kLayers) std::this_thread::yield();
                      throw SystemError("a fault");
                    }};
      CHECK(message_of<SystemError>([&] { run(job); }) == "rank 1: a fault");
    }
  }
}
