// --push during-backward: the weights, a gradient that is not finite, and the time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "dist/compress/magnitude.h"
#include "dist/launch.h"
#include "dist/param_server/shards.h"
#include "dist/strategies.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kIterations = 12, kDuring = 1;
using Values = std::vector<float>;

Device cpu() { return cpu_device(); }

// Of the parameters: their sizes in the order of the flat gradient, and the order in which backward
// finishes them.
struct Layout {
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> ready;
};

Layout reversed(std::vector<std::int64_t> sizes) {
  Layout layout{std::move(sizes), {}};
  for (std::size_t i = layout.sizes.size(); i-- > 0;) layout.ready.push_back(i);
  return layout;
}

std::vector<Layout> layouts() {
  return {
      reversed({10, 20 * kBlock, 7}),                            // a parameter of many segments
      reversed(std::vector<std::int64_t>(100, 50)),              // segments of many parameters
      {{3, 2 * kBlock, 5, 5000, 2500}, {3, 4, 0, 2, 1}},         // not the reverse order
      {{kBlock, kBlock, kBlock, kBlock, 100}, {0, 1, 2, 3, 4}},  // all is ready at the end
      reversed({1}),
  };
}

struct Net {
  explicit Net(const Layout& layout, const Device& device = cpu_device()) {
    std::vector<ParameterSet::Named> named;
    for (const std::int64_t size : layout.sizes) {
      const auto number = static_cast<int>(parameters.size());
      parameters.emplace_back(Shape{size}, gradient(size, number));
      named.push_back({fmt::format("p{}", number), &parameters.back()});
    }
    set.emplace(named, device);
    sgd.emplace(*set, SgdOptions{.schedule = {.base = 0.1}, .momentum = 0.9, .weight_decay = 0.02});
  }
  Values values() const { return set->values().to_host<float>(); }

  std::deque<Parameter> parameters;
  std::optional<ParameterSet> set;
  std::optional<Sgd> sgd;
  Spans spans;
};

// The gradient of a parameter, given its weights.
void compute_gradient(std::span<const float> weights, std::int64_t t, int rank,
                      std::span<float> gradient) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    gradient[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t % 7);
}

struct Job {
  std::string algo;
  StrategyOptions options = {};
  Layout layout;
  int workers = 1;
  std::uint64_t seed = 1;
  const char* compress = "none";
  Device (*device)() = cpu;
  const char* link = "none";
  // Called before a gradient is handed over.
  std::function<void(Parameter& parameter, int rank, std::int64_t t)> meddle = {};

  // How long backward takes from one parameter to the next. 0: a random time.
  Clock::duration fixed_duration{};
  Clock::duration duration(int rank, std::int64_t t, std::size_t parameter) const {
    if (fixed_duration > Clock::duration{}) return fixed_duration;
    const auto drawn = Random(seed)
                           .split(static_cast<std::uint64_t>(rank))
                           .split(static_cast<std::uint64_t>(t))
                           .split(parameter)
                           .below(1'000'000);
    return std::chrono::nanoseconds(1000 + static_cast<std::int64_t>(drawn) * (rank + 1));
  }
  std::int64_t option(const std::string& name) const { return option_value(options, name); }
};

struct Result {
  Values weights;  // at the end
  double seconds = 0;
  bool server_is_finite = true;
};

void backward(const Job& job, Net& net, std::int64_t t, int rank, Hooks& hooks) {
  for (const std::size_t i : job.layout.ready) {
    Parameter& p = net.parameters[i];
    if (VirtualTime* time = VirtualTime::here())
      time->wait_until(Clock::now() + job.duration(rank, t, i));
    compute_gradient(p.value.span<float>(), t, rank, p.gradient.span<float>());
    if (job.meddle) job.meddle(p, rank, t);
    if (hooks.wants_ready_events()) p.ready = net.set->device().backend().record_event();
    hooks.on_grad_ready(p);
  }
}

// `result` also says something about a run that fails.
void run(const Job& job, Result& result) {
  const StrategyInfo& algo = strategy_named(job.algo);
  const auto compressor = make_compressor(job.compress);
  const RankOptions ranks{.app = "test",
                          .ranks = job.workers + algo.servers(job.options),
                          .link = parse_link(job.link)};
  const auto rank_body = [&](Communication& communication) {
    const int rank = communication.transport().rank();
    Net net(job.layout, rank < job.workers ? job.device() : cpu_device());
    const StrategyContext context{.parameters = *net.set,
                                  .optimizer = *net.sgd,
                                  .spans = net.spans,
                                  .communication = communication,
                                  .compressor = *compressor,
                                  .workers = job.workers,
                                  .options = job.options};
    if (rank >= job.workers) {
      try {
        communication.call([&] {
          const auto server = algo.make_server(context);
          server->serve(1, kIterations);
          server->finish();
        });
      } catch (...) {
        result.server_is_finite = all_finite(net.set->values().span<float>());
        throw;
      }
      return;
    }
    const auto strategy = algo.make(context);
    try {
      for (std::int64_t t = 1; t <= kIterations; ++t) {
        strategy->before_step(t);
        backward(job, net, t, rank, *strategy);
        strategy->after_backward(t);
      }
      strategy->finish();
    } catch (const std::exception& e) {
      communication.stop(e.what());
      throw;
    }
    if (rank == 0) result.weights = net.values();
  };
  if (!algo.asynchronous() || !has_virtual_time()) {
    run_on_ranks(ranks, rank_body);
    return;
  }
  in_virtual_time([&] {
    run_on_ranks(ranks, rank_body);
    result.seconds = seconds_of(Clock::now().time_since_epoch());
  });
}

Result run(const Job& job) {
  Result result;
  run(job, result);
  return result;
}

// ASP and SSP without communication. A worker's segment reaches its server at the moment when
// backward has finished all parameters in it and after it.
class Reference {
 public:
  explicit Reference(const Job& of)
      : job_(of),
        servers_(static_cast<std::size_t>(of.option("--servers"))),
        server_(of.layout),
        share_(server_.sgd->with_share_of_decay(1.0 / of.workers)) {
    all_ = segments_for_servers(count(), static_cast<int>(servers_), PushTime::during_backward);
    for (std::size_t s = 0; s < servers_; ++s)
      for (int worker = 0; worker < job_.workers; ++worker)
        clocks_[s].push_back(is_owner(s) ? 0 : std::numeric_limits<std::int64_t>::max());
    for (int worker = 0; worker < job_.workers; ++worker) workers_.emplace_back(job_.layout);
  }

  Values run() {
    for (int worker = 0; worker < job_.workers; ++worker) begin(worker);
    while (!events_.empty()) {
      const auto [time, worker] = *events_.begin();
      events_.erase(events_.begin());
      now_ = time;
      one_is_ready(worker);
    }
    return server_.values();
  }

 private:
  struct Worker {
    explicit Worker(const Layout& layout) : net(layout) {}
    Net net;
    Values start;                  // the weights that this iteration computes with
    std::int64_t t = 1, seen = 0;  // iterations; the copy of SSP has seen all updates up to `seen`
    std::size_t ready = 0;         // parameters
    std::size_t pushed = 0;        // segments
    std::map<std::size_t, std::int64_t> told;  // by server: its clock when it answered
    bool asks = false;
  };

  bool ssp() const { return job_.algo == "ssp"; }
  std::int64_t count() const { return server_.set->values().count(); }
  Worker& worker_at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  // Segments alternate between the servers, from the beginning of the flat gradient.
  std::size_t owner_of(const Segment& segment) const {
    return static_cast<std::size_t>(std::ranges::count_if(
               all_, [&](const Segment& s) { return s.first < segment.first; })) %
           servers_;
  }
  bool is_owner(std::size_t server) const {
    return std::ranges::any_of(all_, [&](const Segment& s) { return owner_of(s) == server; });
  }

  void begin(int worker) {
    Worker& w = worker_at(worker);
    w.start = w.net.values();
    w.ready = w.pushed = 0;
    await_next(worker);
  }
  void await_next(int worker) {
    const Worker& w = worker_at(worker);
    const auto time = now_ + job_.duration(worker, w.t, job_.layout.ready[w.ready]);
    require(events_.try_emplace(time, worker).second, "two workers are ready at the same time");
  }

  void one_is_ready(int worker) {
    Worker& w = worker_at(worker);
    const Parameter& p = w.net.parameters[job_.layout.ready[w.ready++]];
    compute_gradient(std::span(w.start).subspan(static_cast<std::size_t>(p.offset),
                                                static_cast<std::size_t>(p.shape.count())),
                     w.t, worker, p.gradient.span<float>());
    const bool last = w.ready == job_.layout.ready.size();
    std::int64_t complete_from = 0;  // all elements from here on are ready
    for (std::size_t k = w.ready; k < job_.layout.ready.size(); ++k) {
      const Parameter& missing = w.net.parameters[job_.layout.ready[k]];
      complete_from = std::max(complete_from, missing.offset + missing.shape.count());
    }
    while (w.pushed < all_.size() && all_[w.pushed].first >= complete_from)
      push(worker, all_[w.pushed++]);
    last ? end(worker) : await_next(worker);
  }

  void push(int worker, const Segment& segment) {
    Worker& w = worker_at(worker);
    const auto part = [&](const Tensor& flat) { return flat.view(segment.first, {segment.count}); };
    Backend& backend = server_.set->device().backend();
    backend.copy(part(w.net.set->gradients()), part(server_.set->gradients()));
    share_.update_part(w.t, segment.first, segment.count);
    if (!ssp()) return backend.copy(part(server_.set->values()), part(w.net.set->values()));
    const std::size_t server = owner_of(segment);
    const auto rest = std::span(all_).subspan(w.pushed);
    if (std::ranges::any_of(rest, [&](const Segment& s) { return owner_of(s) == server; })) return;
    clocks_[server][static_cast<std::size_t>(worker)] = w.t;
    answer(server);
  }

  void end(int worker) {
    Worker& w = worker_at(worker);
    if (ssp()) w.net.sgd->with_share_of_decay(1.0 / job_.workers).update(w.t);
    if (w.t == kIterations) return;
    w.asks = ssp() && w.seen < w.t - job_.option("--staleness");
    ++w.t;
    if (!w.asks) return begin(worker);
    for (std::size_t server = 0; server < servers_; ++server) answer(server);
  }

  // A worker that begins iteration t has pushed t-1.
  void answer(std::size_t server) {
    const std::int64_t slowest = std::ranges::min(clocks_[server]);
    for (int worker = 0; worker < job_.workers; ++worker) {
      Worker& w = worker_at(worker);
      if (!w.asks || w.told.contains(server)) continue;
      if (slowest < w.t - 1 - job_.option("--staleness")) continue;
      w.told[server] = slowest;
      for (const Segment& s : all_)
        if (owner_of(s) == server)
          server_.set->device().backend().copy(server_.set->values().view(s.first, {s.count}),
                                               w.net.set->values().view(s.first, {s.count}));
      if (w.told.size() < servers_) continue;
      w.seen = std::ranges::min(w.told | std::views::values);
      w.told.clear();
      w.asks = false;
      begin(worker);
    }
  }

  const Job& job_;
  std::size_t servers_;
  Net server_;  // all of them
  Sgd share_;
  std::vector<Segment> all_;
  std::deque<Worker> workers_;
  std::map<std::size_t, std::vector<std::int64_t>> clocks_;  // by server and worker
  std::map<Clock::duration, int> events_;                    // when a worker's next one is ready
  Clock::duration now_{};
};

}  // namespace

TEST_CASE("push during backward: asp and ssp compute what a single process does" *
          doctest::skip(!has_virtual_time())) {
  for (const std::string algo : {"asp", "ssp"})
    for (const Layout& layout : layouts())
      for (const std::int64_t servers : {1, 2, 3})
        for (const int workers : {1, 2, 5})
          for (std::uint64_t seed = 1; seed <= (kSanitized ? 1 : 2); ++seed) {
            Job job{algo, {{"--push", kDuring}, {"--servers", servers}}, layout, workers, seed};
            if (algo == "ssp") job.options["--staleness"] = servers;
            CAPTURE(algo);
            CAPTURE(layout.sizes.size());
            CAPTURE(servers);
            CAPTURE(workers);
            CHECK(same_bits(run(job).weights, Reference(job).run()));
          }
}

TEST_CASE("push during backward: ps-sync has d-sync's bits") {
  for (const char* compress : {"none", "trunc16", "quant8"})
    for (const Layout& layout : layouts())
      for (const int workers : {1, 3}) {
        const Values expected =
            run({.algo = "d-sync", .layout = layout, .workers = workers, .compress = compress})
                .weights;
        for (const std::string algo : {"ps-sync", "ssp"})  // SSP without staleness
          for (const std::int64_t servers : {1, 2, 3}) {
            Job job{algo, {{"--push", kDuring}, {"--servers", servers}}, layout, workers};
            if (algo == "ssp") job.options["--staleness"] = 0;
            job.compress = compress;
            job.device = servers % 2 == 1 ? fake_gpu : cpu;
            CAPTURE(compress);
            CAPTURE(layout.sizes.size());
            CAPTURE(servers);
            CHECK(same_bits(run(job).weights, expected));
          }
      }
}

TEST_CASE("push during backward: a gradient that is not finite is named and not sent") {
  const Layout layout = layouts()[2];
  for (const char* algo : {"ps-sync", "asp", "ssp"})
    for (std::size_t bad = 0; bad < layout.sizes.size(); ++bad)
      for (const std::int64_t at : {1, 2, 9})
        for (const auto device : {cpu, fake_gpu}) {
          Result result;
          Job job{algo, {{"--push", kDuring}, {"--servers", 1}}, layout, 2};
          job.device = device;
          const std::string name = fmt::format("p{}", bad);
          job.meddle = [&](Parameter& p, int rank, std::int64_t t) {
            if (rank == 1 && t == at && p.name == name)
              p.gradient.span<float>().back() = std::numeric_limits<float>::quiet_NaN();
          };
          CHECK(message_of<SystemError>([&] { run(job, result); }) ==
                fmt::format("rank 1: training diverged: the gradient of {} is not finite in "
                            "iteration {}; try a lower --lr",
                            name, at));
          CHECK(result.server_is_finite);
        }
}

TEST_CASE("push during backward: gradients travel while backward computes the next ones" *
          doctest::skip(!has_virtual_time())) {
  // To push a parameter takes as long as to compute its gradient.
  constexpr std::int64_t kParameters = 10, kElements = 10 * kBlock;
  constexpr double kSeconds = kElements * sizeof(float) / (1e9 / 8);
  Job job{.algo = "asp", .layout = reversed(std::vector(kParameters, kElements)), .link = "1gbe"};
  job.fixed_duration = from_seconds(kSeconds);
  const double computing = kIterations * kParameters * kSeconds;
  CHECK(run(job).seconds > 2 * computing);
  job.options["--push"] = kDuring;
  // The last parameter is pushed after backward. finish() pulls all weights.
  CHECK(run(job).seconds < (1 + 1.0 / kIterations + 2.0 / kParameters) * computing);
}
