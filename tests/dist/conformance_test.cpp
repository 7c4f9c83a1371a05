// Checks that every algorithm in the table of dist/strategies.cpp does what its family guarantees.
// A new algorithm is covered by its entry.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kIterations = 20, kIterationsPerEpoch = 3;

// A few parameters, and gradients that depend on rank, iteration and weights. Blocks hold parts of
// several parameters. Backward does not finish them in the reverse order of the flat gradient.
struct Net {
  Net(const Device& device, std::int64_t count)
      : b({count}, gradient(count, 7)),
        d({count / 2 + 1}, gradient(count / 2 + 1, 8)),
        set({{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}, {"e", &e}}, device) {}

  // `meddle` may change the gradients before they are handed over.
  void step(std::int64_t t, int rank, Hooks& hooks, const std::function<void()>& meddle) {
    for (Parameter* p : {&a, &b, &d, &c, &e}) hooks.before_use(*p);
    for (Parameter* p : {&e, &c, &d, &b, &a}) {
      const float* weights = p->value.data<float>();
      float* gradients = p->gradient.data<float>();
      const float more = 0.01F * static_cast<float>((rank + 1) * t);
      for (std::int64_t i = 0, n = p->value.count(); i < n; ++i)
        gradients[i] = 0.1F * weights[i] + more;
      if (p == &b) meddle();
      // Ranks reach this point at different times.
      const std::int64_t late = (t * 7 + rank * 3 + p->index) % 5;
      for (auto n = late; n > 0; --n) std::this_thread::yield();
      if (VirtualTime* time = VirtualTime::here()) time->work(late * std::chrono::microseconds(10));
      if (hooks.wants_ready_events()) p->ready = set.device().backend().record_event();
      hooks.on_grad_ready(*p);
    }
  }
  // What is loaded replaces this.
  void spoil() {
    for (const Parameter* p : set.all()) {
      p->value.backend().fill(p->value, 7);
      p->value.backend().fill(p->momentum, 7);
    }
  }

  Parameter a{{3}, {1, 2, 3}}, b, c{{5}, {5, 4, 3, 2, 1}}, d, e{{2500}, gradient(2500, 9)};
  ParameterSet set;
  Sgd sgd{set, {.schedule = {.base = 0.1}, .momentum = 0.9, .weight_decay = 0.01}};
  Spans spans;
};

Device cpu() { return cpu_device(); }

enum class Saving { never, and_going_on, and_loading };

struct Job {
  const StrategyInfo* algo;
  StrategyOptions options = {};
  const Compressor* compressor;
  int workers = 1;
  std::int64_t count = 1;
  Device (*device)() = cpu;
  const char* link = "none";
  // What is done after some of the iterations.
  Saving saving = Saving::never;
  std::set<std::int64_t> saves = {}, tests = {};
  // What a rank does in the middle of an iteration.
  std::function<void(Net& net, int rank, std::int64_t t)> meddle = {};

  int ranks() const { return workers + algo->servers(options); }
  bool asynchronous() const { return algo->family == Family::asynchronous; }
  // Whether the result depends on which worker is faster.
  bool races() const { return asynchronous() && workers > 1; }
  std::string text() const {
    std::string all =
        fmt::format("{}, {} workers, {} elements, {}", algo->name, workers, count, device().name());
    for (const auto& [name, value] : options) all += fmt::format(", {} {}", name, value);
    return all;
  }
};

StrategyContext context(const Job& job, Net& net, Communication& communication) {
  return {.parameters = net.set,
          .optimizer = net.sgd,
          .spans = net.spans,
          .communication = communication,
          .compressor = *job.compressor,
          .workers = job.workers,
          .options = job.options,
          .warmup_iterations = job.algo->warmup(job.options, kIterationsPerEpoch)};
}

// A rank's net and its part of the algorithm: a Strategy or a Server.
template <class Part>
struct Side {
  Side(const Job& job, const Device& device, Communication& communication,
       std::unique_ptr<Part> (*make)(const StrategyContext&))
      : net(device, job.count), part(make(context(job, net, communication))) {}

  void save_to(Snapshot& saved) {
    saved.save(net.set);
    saved.save(net.sgd);
    saved.save(*part);
  }
  void load_from(Snapshot& saved) {
    net.spoil();
    saved.load(net.set);
    saved.load(net.sgd);
    saved.load(*part);
    saved.require_all_loaded();
  }

  Net net;
  std::unique_ptr<Part> part;
};

// A server's weights and momenta are saved by the server itself.
template <>
void Side<Server>::save_to(Snapshot& saved) {
  saved.save(*part);
}
template <>
void Side<Server>::load_from(Snapshot& saved) {
  net.spoil();
  saved.load(*part);
}

std::vector<float> weights_of(const Net& net) { return net.set.values().to_host<float>(); }

// After iteration t: saves the side, and goes on with it or with another one that is loaded.
template <class Part, class Make>
void pause(const Job& job, std::int64_t t, std::unique_ptr<Side<Part>>& side, const Make& make) {
  if (job.saving == Saving::never || !job.saves.contains(t)) return;
  Snapshot saved;
  side->save_to(saved);
  saved.wait();
  if (job.saving == Saving::and_going_on) return;
  side = make();
  side->load_from(saved);
}

void serve(const Job& job, Communication& communication) {
  communication.call([&] {
    const auto make = [&] {
      return std::make_unique<Side<Server>>(job, cpu_device(), communication,
                                            job.algo->make_server);
    };
    auto side = make();
    std::set<std::int64_t> pauses = job.saves;
    pauses.insert(kIterations);
    std::int64_t served = 0;
    for (const std::int64_t t : pauses) {
      side->part->serve(std::exchange(served, t) + 1, t);
      pause(job, t, side, make);
    }
    side->part->finish();
  });
}

// A worker's weights as they were tested or kept, one after the other, and at the end.
using Weights = std::vector<std::vector<float>>;

Weights work(const Job& job, Communication& communication) {
  const int rank = communication.transport().rank();
  const auto make = [&] {
    return std::make_unique<Side<Strategy>>(job, job.device(), communication, job.algo->make);
  };
  auto side = make();
  Weights seen;
  try {
    for (std::int64_t t = 1; t <= kIterations; ++t) {
      side->part->before_step(t);
      side->net.step(t, rank, *side->part, [&] {
        if (job.meddle) job.meddle(side->net, rank, t);
      });
      side->part->after_backward(t);
      if (job.asynchronous() && job.tests.contains(t)) side->part->keep_weights(t);
      if (job.asynchronous() && job.saves.contains(t)) side->part->settle();
      pause(job, t, side, make);
      if (job.asynchronous() || !job.tests.contains(t)) continue;
      side->part->settle();
      side->part->before_test();
      seen.push_back(weights_of(side->net));
      side->part->after_test();
    }
    side->part->finish();
    for (const Tensor& kept : side->part->take_kept_weights())
      seen.push_back(kept.to_host<float>());
    seen.push_back(weights_of(side->net));
  } catch (const std::exception& e) {
    communication.stop(e.what());
    throw;
  }
  return seen;
}

// What each worker has seen.
std::vector<Weights> run_now(const Job& job) {
  std::vector<Weights> weights(static_cast<std::size_t>(job.workers));
  const RankOptions options{.app = "test", .ranks = job.ranks(), .link = parse_link(job.link)};
  run_on_ranks(options, [&](Communication& communication) {
    const int rank = communication.transport().rank();
    if (rank >= job.workers)
      serve(job, communication);
    else
      weights[static_cast<std::size_t>(rank)] = work(job, communication);
  });
  return weights;
}

// If workers race, the virtual clock decides who wins, so that a run can be repeated.
std::vector<Weights> run(const Job& job) {
  if (!job.races() || !has_virtual_time() || VirtualTime::here()) return run_now(job);
  Job raced = job;
  raced.link = "1gbe";
  std::vector<Weights> weights;
  in_virtual_time([&] { weights = run_now(raced); });
  return weights;
}

// The defaults, and each option once with its least value and once with one more than the default,
// or with each of its choices.
std::vector<StrategyOptions> variants(const StrategyInfo& algo) {
  std::vector<StrategyOptions> all(1);
  const auto add = [&](const StrategyOption& option, std::int64_t value) {
    StrategyOptions options{{option.name, value}};
    if (option.name == "--via" && algo.servers(options) > 0) options["--servers"] = 2;
    if (option.name == "--servers" && algo.servers(options) == 0) return;
    if (value != option.value) all.push_back(options);
  };
  for (const StrategyOption& option : algo.options) {
    add(option, option.least);
    add(option, option.value + 1);
    if (option.decimal()) add(option, option.most);
    for (std::int64_t value = 2; value < std::ssize(option.choices); ++value) add(option, value);
  }
  return all;
}

std::vector<int> worlds(const StrategyInfo& algo) {
  if (algo.least_workers > 1) return {2, 3, 5};
  return algo.distributed() ? std::vector{1, 2, 3, 5} : std::vector{1};
}

// Calls check(job) for every algorithm with all its variants, compressors, worlds and devices. With
// sanitizers only every second job runs, so that each value of these still meets each value of the
// others. A check that compares the devices has both, the CPU first.
template <class Check>
void for_all_jobs(const std::vector<std::int64_t>& counts, const Check& check,
                  bool compares_devices = false) {
  const auto compressors = compressor_names();
  for (std::size_t c = 0; c < compressors.size(); ++c) {
    const auto compressor = make_compressor(compressors[c]);
    for (const StrategyInfo& algo : all_strategies()) {
      if (algo.sends_weights && !compressor->lossless()) continue;
      const std::vector<int> sizes = worlds(algo);
      for (const StrategyOptions& options : variants(algo))
        for (std::size_t w = 0; w < sizes.size(); ++w)
          for (std::size_t n = 0; n < counts.size(); ++n)
            for (const bool gpu : {false, true}) {
              const bool odd = (c + w + n + (gpu && !compares_devices ? 1 : 0)) % 2 == 1;
              if (kSanitized && odd && sizes.size() > 1) continue;
              const Job job{.algo = &algo,
                            .options = options,
                            .compressor = compressor.get(),
                            .workers = sizes[w],
                            .count = counts[n],
                            .device = gpu ? fake_gpu : cpu};
              CAPTURE(compressors[c]);
              CAPTURE(job.text());
              check(job);
            }
    }
  }
}

bool same(const Weights& a, const Weights& b) { return std::ranges::equal(a, b, same_bits); }
bool same(const std::vector<Weights>& a, const std::vector<Weights>& b) {
  return std::ranges::equal(a, b, [](const Weights& x, const Weights& y) { return same(x, y); });
}

}  // namespace

TEST_CASE("conformance: entries of the table are complete and consistent") {
  std::set<std::string> names, labels;
  for (const StrategyInfo& algo : all_strategies()) {
    CAPTURE(algo.name);
    CHECK(names.insert(algo.name).second);
    CHECK(!algo.help.empty());
    REQUIRE((algo.make != nullptr));
    CHECK((algo.rows.label.empty() || labels.insert(algo.rows.label).second));
    for (const std::string& compress : algo.rows.compressors) CHECK(make_compressor(compress));
    CHECK((algo.make_server != nullptr) == algo.has_option("--servers"));
    for (const StrategyOption& own : algo.options) {
      CAPTURE(own.name);
      CHECK(own.name.starts_with("--"));
      CHECK(!own.help.empty());
      CHECK(own.least <= own.value);
      CHECK(own.value < own.most);
      CHECK((own.choices.empty() || own.most == std::ssize(own.choices) - 1));
      // Algorithms that share an option mean the same by it.
      const auto shared = std::ranges::find(strategy_options(), own.name, &StrategyOption::name);
      CHECK(shared->help == own.help);
      CHECK(shared->value == own.value);
    }
  }
  for (const int workers : {1, 2}) CHECK(default_strategy(workers).distributed() == (workers > 1));
  CHECK(message_of<UserError>([] { strategy_named("magic"); }) == "--algo magic is not known");
}

TEST_CASE(
    "conformance: all workers end with the same weights on all devices; synchronous "
    "algorithms with d-sync's") {
  std::vector<Weights> on_cpu;  // of the same job; the CPU comes first
  std::map<std::tuple<Packing, bool, int, std::int64_t>, std::vector<Weights>> references;
  for_all_jobs(
      {1, 13, 4099},
      [&](const Job& job) {
        const auto weights = run(job);
        for (const Weights& of_one : weights) CHECK(same(of_one, weights[0]));
        if (job.device == cpu)
          on_cpu = weights;
        else if (!job.races())
          CHECK(same(weights, on_cpu));
        if (job.algo->family != Family::synchronous && job.algo->family != Family::alone) return;
        // One worker without compression has the bits of one that is alone.
        const bool plain = job.workers == 1 && job.compressor->lossless();
        if (!job.algo->distributed() && !plain) return;
        auto& reference = references[{job.compressor->packing(), plain, job.workers, job.count}];
        if (reference.empty())
          reference = run({.algo = &default_strategy(plain ? 1 : 2),
                           .compressor = job.compressor,
                           .workers = job.workers,
                           .count = job.count});
        CHECK(same(weights, reference));
      },
      true);
}

TEST_CASE("conformance: in virtual time, a run has the same bits and ends at the same nanosecond" *
          doctest::skip(!has_virtual_time())) {
  for_all_jobs({4099}, [&](Job job) {
    if (job.workers != 1 && job.workers != 3) return;
    auto expected = run(job);
    job.link = "1gbe";
    Clock::time_point ends[2];
    for (Clock::time_point& end : ends)
      in_virtual_time([&] {
        CHECK(same(run(job), expected));
        end = Clock::now();
      });
    CHECK(ends[0] == ends[1]);
    if (job.ranks() > 1) CHECK(ends[0] > Clock::time_point{});
  });
}

TEST_CASE("conformance: a run that is saved, or loaded again, continues to the same bits") {
  Random random(18);
  for_all_jobs({13}, [&](Job job) {
    if (job.races() && !has_virtual_time()) return;
    for (int i = 0; i < 2; ++i)
      job.saves.insert(1 + static_cast<std::int64_t>(random.below(kIterations)));
    // If workers race, pauses change the run: all runs have them, whether they save or not.
    const auto uninterrupted = run(job);
    for (const Saving saving : {Saving::and_going_on, Saving::and_loading}) {
      job.saving = saving;
      CHECK(same(run(job), uninterrupted));
    }
  });
}

TEST_CASE("conformance: all workers test the same weights, and testing changes nothing") {
  Random random(20);
  for_all_jobs({13}, [&](Job job) {
    const auto untested = run(job);
    for (int i = 0; i < 3; ++i)
      job.tests.insert(1 + static_cast<std::int64_t>(random.below(kIterations)));
    const auto tested = run(job);
    for (std::size_t worker = 0; worker < tested.size(); ++worker) {
      const bool has_tested = !job.asynchronous() || worker == 0;
      REQUIRE(tested[worker].size() == (has_tested ? job.tests.size() : 0) + 1);
      if (has_tested) CHECK(same(tested[worker], tested[0]));
      CHECK(same_bits(tested[worker].back(), tested[0].back()));
      if (!job.races()) CHECK(same_bits(tested[worker].back(), untested[worker].back()));
    }
  });
}

TEST_CASE("conformance: a rank that fails ends the job, and its reason is reported") {
  Random random(19);
  for_all_jobs({13}, [&](Job job) {
    if (job.ranks() == 1) return;
    const auto failing = static_cast<int>(random.below(static_cast<std::uint64_t>(job.workers)));
    const std::int64_t at = 1 + static_cast<std::int64_t>(random.below(kIterations));
    job.meddle = [=](Net&, int rank, std::int64_t t) {
      if (rank == failing && t == at) throw SystemError("a fault");
    };
    CHECK(message_of<SystemError>([&] { run(job); }) == fmt::format("rank {}: a fault", failing));
  });
}

TEST_CASE("conformance: a gradient that is not finite is reported with its rank and parameter") {
  for_all_jobs({13}, [](Job job) {
    if (job.workers < 2) return;
    job.meddle = [](Net& net, int rank, std::int64_t t) {
      if (t == 9 && rank == 1)  // with a plan
        net.b.gradient.span<float>()[1] = -std::numeric_limits<float>::infinity();
    };
    const std::string message = message_of<SystemError>([&] { run(job); });
    CHECK(message.starts_with(
        "rank 1: training diverged: the gradient of b is not finite in iteration "));
    if (job.algo->family == Family::synchronous)
      CHECK(message.ends_with(" in iteration 9; try a lower --lr"));
  });
}
