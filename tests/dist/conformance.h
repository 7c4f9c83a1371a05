// Runs an algorithm of the table of dist/strategies.cpp with a small net, for the conformance test:
// with any options, compression, number of workers and device, with saving, loading and testing on
// the way.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/codecs/codec_table.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

namespace tandem::test {

inline constexpr std::int64_t kIterations = 16, kIterationsPerEpoch = 3;
inline constexpr double kMomentum = 0.9;

// A few parameters, and gradients that depend on rank, iteration and weights. Blocks hold parts of
// several parameters. Backward does not finish them in the reverse order of the flat gradient.
struct Net {
  Net(const Device& device, std::int64_t count, bool gradient_has_momentum)
      : b({count}, gradient(count, 7)),
        d({count / 2 + 1}, gradient(count / 2 + 1, 8)),
        set({{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}, {"e", &e}}, device),
        sgd(set, {.schedule = {.base = 0.1},
                  .momentum = kMomentum,
                  .weight_decay = 0.01,
                  .gradient_has_momentum = gradient_has_momentum}) {}

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
      if (VirtualTime* time = VirtualTime::here())
        time->work(late * std::chrono::microseconds(10));
      else
        for (auto n = late; n > 0; --n) std::this_thread::yield();
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

  Parameter a{{3}, {1, 2, 3}}, b, c{{5}, {5, 4, 3, 2, 1}}, d, e{{50, 50}, gradient(2500, 9)};
  ParameterSet set;
  Sgd sgd;
  Spans spans;
};

inline Device cpu() { return cpu_device(); }

enum class Saving { never, and_going_on, and_loading };

struct Job {
  const StrategyInfo* algo;
  StrategyOptions options = {};
  std::string compress = "none";
  int workers = 1;
  std::int64_t count = 1;
  Device (*device)() = cpu;
  const char* link = "none";
  // Or on fibers, in virtual time, which takes a fifth of the processor's time or less.
  bool on_threads = true;
  // What is done after some of the iterations.
  Saving saving = Saving::never;
  std::set<std::int64_t> saves = {}, tests = {};
  // What a rank does in the middle of an iteration.
  std::function<void(Net& net, int rank, std::int64_t t)> meddle = {};

  int ranks() const { return workers + algo->servers(options); }
  // Workers that add their gradients within nodes need nodes with several of them.
  int ranks_per_node() const { return options.contains("--aggregate") ? 2 : 1; }
  bool asynchronous() const { return algo->family == Family::asynchronous; }
  // Whether two runs have the same bits, also if one is resumed. The first iterations of a run that
  // measures are cut differently from the others, and plans differ.
  bool repeats() const {
    const auto codec = parse_compression(compress);
    return !codec || codec->info->by_block || algo->measures_until == 0;
  }
  // Whether the result depends on which worker is faster.
  bool races() const { return asynchronous() && workers > 1; }
  std::string text() const {
    std::string all =
        fmt::format("{}, {} workers, {} elements, {}", algo->name, workers, count, device().name());
    for (const auto& [name, value] : options) all += fmt::format(", {} {}", name, value);
    return all;
  }
};

inline std::unique_ptr<Codec> codec_of(const Job& job, Net& net, Communication& communication) {
  const auto choice = parse_compression(job.compress);
  if (!choice) return nullptr;
  return choice->info->make(*choice, {.parameters = net.set,
                                      .workers = job.workers,
                                      .rank = communication.transport().rank(),
                                      .momentum = kMomentum,
                                      .iterations_per_epoch = kIterationsPerEpoch});
}

inline StrategyContext context(const Job& job, Net& net, const Compressor& compressor, Codec* codec,
                               Communication& communication) {
  return {.parameters = net.set,
          .optimizer = net.sgd,
          .spans = net.spans,
          .communication = communication,
          .compressor = compressor,
          .codec = codec,
          .workers = job.workers,
          .options = job.options,
          .warmup_iterations = job.algo->warmup(job.options, kIterationsPerEpoch)};
}

// A rank's net and its part of the algorithm: a Strategy or a Server.
template <class Part>
struct Side {
  Side(const Job& job, const Device& device, Communication& communication,
       std::unique_ptr<Part> (*make)(const StrategyContext&))
      : net(device, job.count, owns_momentum(job.compress)),
        compressor(make_compressor(compressor_in_ring(job.compress))),
        codec(codec_of(job, net, communication)),
        part(make(context(job, net, *compressor, codec.get(), communication))) {}

  void save_to(Snapshot& saved) {
    saved.save(net.set);
    saved.save(net.sgd);
    saved.save(*part);
    if (codec) saved.save(*codec);
  }
  void load_from(Snapshot& saved) {
    net.spoil();
    saved.load(net.set);
    saved.load(net.sgd);
    saved.load(*part);
    if (codec) saved.load(*codec);
    saved.require_all_loaded();
  }

  Net net;
  std::unique_ptr<Compressor> compressor;
  std::unique_ptr<Codec> codec;
  std::unique_ptr<Part> part;
};

// A server's weights and momenta are saved by the server itself.
template <>
inline void Side<Server>::save_to(Snapshot& saved) {
  saved.save(*part);
}
template <>
inline void Side<Server>::load_from(Snapshot& saved) {
  net.spoil();
  saved.load(*part);
}

inline std::vector<float> weights_of(const Net& net) { return net.set.values().to_host<float>(); }

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

inline void serve(const Job& job, Communication& communication) {
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

inline Weights work(const Job& job, Communication& communication) {
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
inline std::vector<Weights> run_now(const Job& job) {
  std::vector<Weights> weights(static_cast<std::size_t>(job.workers));
  const RankOptions options{.app = "test",
                            .ranks = job.ranks(),
                            .link = parse_link(job.link),
                            .ranks_per_node = job.ranks_per_node()};
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
inline std::vector<Weights> run(Job job) {
  if ((job.on_threads && !job.races()) || !has_virtual_time() || VirtualTime::here())
    return run_now(job);
  if (job.races()) job.link = "1gbe";
  std::vector<Weights> weights;
  in_virtual_time([&] { weights = run_now(job); });
  return weights;
}

// The defaults, and each option once with its least value and once with one more than the default,
// or with each of its choices.
inline std::vector<StrategyOptions> variants(const StrategyInfo& algo) {
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

inline std::vector<int> worlds(const StrategyInfo& algo) {
  if (algo.least_workers > 1) return {2, 3, 5};
  return algo.distributed() ? std::vector{1, 2, 3, 5} : std::vector{1};
}

// All compressors, and each codec once.
inline std::vector<std::string> compressions() {
  std::vector<std::string> all = compressor_names();
  for (const char* codec :
       {"terngrad", "qsgd:4", "onebit", "topk:0.1", "randomk:0.2", "dgc:0.1", "powersgd:1"})
    all.emplace_back(codec);
  return all;
}

inline bool possible(const StrategyInfo& algo, const StrategyOptions& options,
                     const std::string& compress) {
  try {
    algo.require_possible(algo.least_workers, compress, options);
    return algo.distributed() || !parse_compression(compress);
  } catch (const UserError&) {
    return false;
  }
}

// Calls check(job) for every algorithm with all its variants, compressors, worlds and devices.
// Codecs have fewer worlds, and the largest count. A check that compares the devices has both, the
// CPU first. Every fifth job, chosen at random, runs on threads, the others on fibers. With
// sanitizers only every third job runs, in turn, so that every algorithm still meets every
// compressor and every world. Of codecs every second job runs: every codec meets every algorithm's
// defaults, and every other variant meets one of the codecs.
template <class Check>
void for_all_jobs(const std::vector<std::int64_t>& counts, const Check& check,
                  bool compares_devices = false) {
  Random random(21);
  const auto all = compressions();
  const std::size_t codecs = all.size() - compressor_names().size();
  for (std::size_t c = 0; c < all.size(); ++c) {
    const bool codec = parse_compression(all[c]).has_value();
    const std::size_t one_in = codec ? 2 : 3;
    std::size_t a = 0;
    for (const StrategyInfo& algo : all_strategies()) {
      ++a;
      const std::vector<int> sizes = codec ? std::vector{1, 3} : worlds(algo);
      const std::vector<StrategyOptions> ways = variants(algo);
      for (std::size_t v = 0; v < ways.size(); ++v) {
        const StrategyOptions& options = ways[v];
        if (kSanitized && codec && v > 0 && v % codecs != c % codecs) continue;
        for (std::size_t w = 0; w < sizes.size(); ++w)
          for (std::size_t n = codec ? counts.size() - 1 : 0; n < counts.size(); ++n)
            for (const bool gpu : {false, true}) {
              if (!possible(algo, options, all[c])) continue;
              const std::size_t turn = a + v + c + w + n + (gpu && !compares_devices ? 1 : 0);
              if (kSanitized && turn % one_in > 0 && sizes.size() > 1) continue;
              const Job job{.algo = &algo,
                            .options = options,
                            .compress = all[c],
                            .workers = sizes[w],
                            .count = counts[n],
                            .device = gpu ? fake_gpu : cpu,
                            .on_threads = random.below(5) == 0};
              CAPTURE(all[c]);
              CAPTURE(job.text());
              check(job);
            }
      }
    }
  }
}

inline bool same(const Weights& a, const Weights& b) { return std::ranges::equal(a, b, same_bits); }
inline bool same(const std::vector<Weights>& a, const std::vector<Weights>& b) {
  return std::ranges::equal(a, b, [](const Weights& x, const Weights& y) { return same(x, y); });
}

}  // namespace tandem::test
