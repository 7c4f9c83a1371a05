// Compares the asynchronous algorithms that have servers with a reference without communication. In
// virtual time it is known in which order workers push, so the bits must agree.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "tensor/backend.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kCount = 5000, kIterations = 30;
using Values = std::vector<float>;

// Weights with momenta, and a gradient that depends on the weights, the rank and the iteration.
struct Net {
  Values values() const { return set.values().to_host<float>(); }
  void set_values(const Values& values) {
    Tensor(set.values()).copy_from_host(std::span<const float>(values));
  }
  void compute_gradient(std::int64_t t, int rank) {
    const auto weights = set.values().span<float>(), gradient = set.gradients().span<float>();
    for (std::size_t i = 0; i < weights.size(); ++i)
      gradient[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t % 7);
  }

  Parameter weight{{kCount}, gradient(kCount, 7)};
  ParameterSet set{{{"weight", &weight}}, cpu_device()};
  Sgd sgd{set, {.schedule = {.base = 0.1}, .momentum = 0.9, .weight_decay = 0.02}};
  Spans spans;
};

struct Job {
  std::string algo;
  StrategyOptions options = {};
  int workers = 3;
  std::uint64_t seed = 1;

  // How long a worker computes in an iteration, in nanoseconds. Two workers never finish at the
  // same time.
  std::int64_t duration(int rank, std::int64_t t) const {
    const auto drawn = Random(seed)
                           .split(static_cast<std::uint64_t>(rank))
                           .split(static_cast<std::uint64_t>(t))
                           .below(1'000'000);
    return (1000 + static_cast<std::int64_t>(drawn) * (rank + 1)) * workers + (t == 1 ? rank : 0);
  }
  std::int64_t option(const std::string& name) const { return option_value(options, name); }
};

struct Result {
  Values weights;  // at the end
  // How many iterations a worker was ahead of the slowest when it began to compute, at most.
  std::int64_t lead = 0;
  std::int64_t pulled = 0;  // bytes that the servers have sent
  double seconds = 0;
};

StrategyContext context(const Job& job, Net& net, Communication& communication,
                        const Compressor& compressor) {
  return {.parameters = net.set,
          .optimizer = net.sgd,
          .spans = net.spans,
          .communication = communication,
          .compressor = compressor,
          .workers = job.workers,
          .options = job.options};
}

Result run(const Job& job) {
  const StrategyInfo& algo = strategy_named(job.algo);
  const auto compressor = make_none();
  Result result;
  std::vector<std::int64_t> done(static_cast<std::size_t>(job.workers));
  in_virtual_time([&] {
    const int ranks = job.workers + algo.servers(job.options);
    run_on_ranks({.app = "test", .ranks = ranks}, [&](Communication& communication) {
      const int rank = communication.transport().rank();
      Net net;
      if (rank >= job.workers) {
        communication.call([&] {
          const auto server = algo.make_server(context(job, net, communication, *compressor));
          server->serve(1, kIterations);
          result.pulled += communication.transport().bytes_sent(Tag::pull);
          server->finish();
        });
        return;
      }
      const auto strategy = algo.make(context(job, net, communication, *compressor));
      for (std::int64_t t = 1; t <= kIterations; ++t) {
        strategy->before_step(t);
        result.lead = std::max(result.lead, t - 1 - std::ranges::min(done));
        VirtualTime::here()->wait_until(Clock::now() +
                                        std::chrono::nanoseconds(job.duration(rank, t)));
        net.compute_gradient(t, rank);
        strategy->after_backward(t);
        done[static_cast<std::size_t>(rank)] = t;
      }
      strategy->finish();
      if (rank == 0) result.weights = net.values();
    });
    result.seconds = seconds_of(Clock::now().time_since_epoch());
  });
  return result;
}

// All workers and the server, without communication. `push(worker, t)` is called in the order in
// which workers finish their iterations. It returns whether the worker goes on at once. If not,
// resume(worker) must be called later.
class Reference {
 public:
  explicit Reference(const Job& of) : job(of), nets(static_cast<std::size_t>(of.workers)) {}

  Values run(const std::function<bool(int worker, std::int64_t t)>& push) {
    for (int worker = 0; worker < job.workers; ++worker) begin(worker, 0, 1);
    while (!finishes_.empty()) {
      const auto [time, finish] = *finishes_.begin();
      finishes_.erase(finishes_.begin());
      const auto [worker, t] = finish;
      now_ = time;
      nets[static_cast<std::size_t>(worker)].compute_gradient(t, worker);
      next_[worker] = t + 1;
      if (push(worker, t)) resume(worker);
    }
    return server.values();
  }
  void resume(int worker) {
    if (next_[worker] <= kIterations) begin(worker, now_, next_[worker]);
  }
  Net& net(int worker) { return nets[static_cast<std::size_t>(worker)]; }

  // The server applies a worker's gradient.
  void update_server(int worker, std::int64_t t) {
    server.sgd.with_share_of_decay(1.0 / job.workers).update(t, net(worker).set.gradients());
  }

  const Job& job;
  std::vector<Net> nets;
  Net server;

 private:
  void begin(int worker, std::int64_t now, std::int64_t t) {
    const bool alone = finishes_.try_emplace(now + job.duration(worker, t), worker, t).second;
    REQUIRE(alone);
  }

  std::map<std::int64_t, std::pair<int, std::int64_t>> finishes_;
  std::map<int, std::int64_t> next_;
  std::int64_t now_ = 0;
};

std::vector<Job> jobs(const std::string& algo, const std::vector<StrategyOptions>& options) {
  std::vector<Job> all;
  for (const StrategyOptions& given : options)
    for (const int workers : {1, 2, 5})
      for (const std::uint64_t seed : {1, 2})
        for (const std::int64_t servers : {1, 2}) {
          Job job{algo, given, workers, seed};
          job.options["--servers"] = servers;
          all.push_back(job);
        }
  return all;
}

}  // namespace

TEST_CASE("asp: workers and servers compute what a single process does" *
          doctest::skip(!has_virtual_time())) {
  for (const Job& job : jobs("asp", {{}})) {
    Reference reference(job);
    const Values expected = reference.run([&](int worker, std::int64_t t) {
      reference.update_server(worker, t);
      reference.net(worker).set_values(reference.server.values());
      return true;
    });
    const Result found = run(job);
    CHECK(same_bits(found.weights, expected));
    // Table I of Ko et al.: every worker pulls in every iteration.
    CHECK(found.pulled == job.workers * kIterations * reference.server.set.values().count() *
                              static_cast<std::int64_t>(sizeof(float)));
  }
}

TEST_CASE("asp: with one worker, it is SGD" * doctest::skip(!has_virtual_time())) {
  Net net;
  for (std::int64_t t = 1; t <= kIterations; ++t) {
    net.compute_gradient(t, 0);
    net.sgd.update(t);
  }
  CHECK(same_bits(run({"asp", {}, 1}).weights, net.values()));
}

TEST_CASE("ssp: workers and servers compute what a single process does" *
          doctest::skip(!has_virtual_time())) {
  for (const Job& job : jobs("ssp", {{{"--staleness", 1}}, {{"--staleness", 4}}})) {
    const std::int64_t staleness = job.option("--staleness");
    Reference reference(job);
    std::vector<std::int64_t> clocks(static_cast<std::size_t>(job.workers)), seen = clocks;
    std::vector<bool> asks(clocks.size());
    const Values expected = reference.run([&](int worker, std::int64_t t) {
      reference.update_server(worker, t);
      Net& own = reference.net(worker);
      own.sgd.with_share_of_decay(1.0 / job.workers).update(t);
      clocks[static_cast<std::size_t>(worker)] = t;
      asks[static_cast<std::size_t>(worker)] =
          t < kIterations && seen[static_cast<std::size_t>(worker)] < t - staleness;
      const std::int64_t slowest = std::ranges::min(clocks);
      for (std::size_t i = 0; i < clocks.size(); ++i) {
        if (!asks[i] || slowest < clocks[i] - staleness) continue;
        asks[i] = false;
        seen[i] = slowest;
        reference.nets[i].set_values(reference.server.values());
        if (static_cast<int>(i) != worker) reference.resume(static_cast<int>(i));
      }
      return !asks[static_cast<std::size_t>(worker)];
    });
    const Result found = run(job);
    CHECK(same_bits(found.weights, expected));
    CHECK(found.lead <= staleness);
    if (job.workers > 1) CHECK(found.lead > 0);
  }
}

TEST_CASE("ssp: without staleness, it is ps-sync" * doctest::skip(!has_virtual_time())) {
  const Values expected = run({"ps-sync", {}, 3}).weights;
  const Result found = run({"ssp", {{"--staleness", 0}}, 3});
  CHECK(same_bits(found.weights, expected));
}

TEST_CASE("ssp: no worker exceeds the staleness, whatever the speeds" *
          doctest::skip(!has_virtual_time())) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    for (const std::int64_t staleness : {1, 3, 10}) {
      const Result found = run({"ssp", {{"--staleness", staleness}}, 4, seed});
      CHECK(found.lead <= staleness);
    }
}

TEST_CASE("easgd: workers and servers compute what a single process does" *
          doctest::skip(!has_virtual_time())) {
  for (const Job& job :
       jobs("easgd", {{{"--period", 1}}, {{"--period", 4}, {"--elastic-rate", 250'000}}})) {
    const double rate = job.option("--elastic-rate") > 0 ? 0.25 : 0.9 / job.workers;
    Reference reference(job);
    const Values expected = reference.run([&](int worker, std::int64_t t) {
      Net& own = reference.net(worker);
      own.sgd.update(t);
      if (t % job.option("--period") != 0) return true;
      const Tensor &x = own.set.values(), &centre = reference.server.set.values();
      const Tensor before = centre.clone();
      Backend& backend = centre.backend();
      backend.weighted_sum(1 - rate, centre, rate, x, centre);
      backend.weighted_sum(1 - rate, x, rate, before, x);
      return true;
    });
    CHECK(same_bits(run(job).weights, expected));
  }
}

TEST_CASE("a slow worker slows ps-sync down, but not asp" * doctest::skip(!has_virtual_time())) {
  // Worker 4 computes five times as long as worker 0: with asp, the others do not wait for it.
  const Job asp{"asp", {}, 5}, sync{"ps-sync", {}, 5};
  const auto own_time = [&](int rank) {
    std::int64_t sum = 0;
    for (std::int64_t t = 1; t <= kIterations; ++t) sum += asp.duration(rank, t);
    return 1e-9 * static_cast<double>(sum);
  };
  CHECK(run(asp).seconds == doctest::Approx(own_time(4)).epsilon(1e-6).scale(0));
  CHECK(run(sync).seconds > 1.05 * own_time(4));
}
