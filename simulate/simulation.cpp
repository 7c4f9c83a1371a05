#include "simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/statistics.h"
#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/transport/stall.h"
#include "simulate/phantom_codec.h"
#include "simulate/phantom_device.h"

namespace tandem {
namespace {

constexpr double kStallTimeout = 10'000;  // seconds
constexpr std::int64_t kCold = 4;
constexpr std::int64_t kLongestCycle = 16;

// One rank's net, which takes time and computes nothing.
class PhantomNet {
 public:
  PhantomNet(const Profile& profile, const HostCost& cost)
      : profile_(profile), parameters_(make(profile)), set(named(), phantom_device(cost)) {}

  // `slower`: how long it takes, compared with the profile.
  void step(Strategy& hooks, double slower) {
    VirtualTime& time = *VirtualTime::here();
    {
      const Spans::Scope span(spans, SpanKind::forward);
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        hooks.before_use(parameters_[i]);
        time.work(from_seconds(slower * profile_.tensors[i].forward_s));
      }
    }
    const Spans::Scope span(spans, SpanKind::backward);
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      time.work(from_seconds(slower * profile_.tensors[i].backward_s));
      hooks.on_grad_ready(parameters_[i]);
    }
  }

 private:
  static std::deque<Parameter> make(const Profile& profile) {
    std::deque<Parameter> parameters;
    for (const Profile::Tensor& tensor : profile.tensors)
      parameters.emplace_back(Shape{tensor.elements}, Parameter::Make());
    return parameters;
  }
  std::vector<ParameterSet::Named> named() {
    std::vector<ParameterSet::Named> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      all.push_back({profile_.tensors[i].name, &parameters_[i]});
    return all;
  }

  const Profile& profile_;
  std::deque<Parameter> parameters_;

 public:
  ParameterSet set;
  Sgd optimizer{set, {.schedule = {.base = 0.1}, .momentum = 0.9}};
  Spans spans;
};

// How long a rank computes in an iteration, compared with the profile.
class Slowness {
 public:
  Slowness(const Profile& profile, const Simulation& s, int rank)
      : spread_(s.random(profile) ? &profile.spread : nullptr),
        rank_(static_cast<std::size_t>(rank)),
        random_(Random(s.seed).split(static_cast<std::uint64_t>(rank))) {
    // As many workers as were measured compute as they did, iteration by iteration.
    const auto& measured = profile.iterations;
    if (spread_ && !measured.empty() && std::ssize(measured.front()) == s.workers) {
      iterations_ = &measured;
      next_ = Random(s.seed).bits() % measured.size();
    }
    const auto slow = s.slow_ranks.find(rank);
    if (slow != s.slow_ranks.end()) factor_ = 1 / slow->second;
  }

  double operator()() {
    if (!spread_) return factor_;
    if (iterations_) return factor_ * (*iterations_)[next_++ % iterations_->size()][rank_];
    const double at = random_.uniform() * static_cast<double>(spread_->size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const double share = at - std::floor(at);
    const double above = (*spread_)[std::min(below + 1, spread_->size() - 1)];
    return factor_ * ((1 - share) * (*spread_)[below] + share * above);
  }

 private:
  const std::vector<double>* spread_;
  const std::vector<std::vector<double>>* iterations_ = nullptr;
  std::size_t rank_, next_ = 0;
  Random random_;
  double factor_ = 1;
};

// Of an option that the algorithm may have.
std::int64_t value_of(const StrategyInfo& algo, const StrategyOptions& given,
                      const std::string& option) {
  return algo.has_option(option) ? option_value(given, option) : 1;
}

// How many iterations pass before all are alike. A pipeline takes K iterations to fill. Algorithms
// that measure wait for all communication when they have measured, so the next iteration begins
// without any.
std::int64_t cold_iterations(const StrategyInfo& algo, const StrategyOptions& given) {
  return std::max({kCold, algo.measures_until + 1, value_of(algo, given, "--pipe-k") + 1});
}

constexpr double kNanosecond = 1e-9;  // times are rounded to it

// The length of the shortest cycle in which the last iterations repeat, a multiple of `period`; 0
// if they do not.
std::int64_t cycle_of(const std::vector<double>& ends, std::int64_t cold, std::int64_t period) {
  const std::int64_t last = std::ssize(ends) - 1;
  const auto length = [&](std::int64_t i) {
    return ends[static_cast<std::size_t>(i)] - ends[static_cast<std::size_t>(i - 1)];
  };
  for (std::int64_t cycle = period; cycle <= std::max(period, kLongestCycle); cycle += period) {
    const std::int64_t compared = std::max<std::int64_t>(3, 2 * cycle);
    if (last - compared - cycle < cold) return 0;
    bool repeats = true;
    for (std::int64_t i = last; i > last - compared && repeats; --i)
      repeats = std::abs(length(i) - length(i - cycle)) <= 2 * kNanosecond + 1e-7 * length(i);
    if (repeats) return cycle;
  }
  return 0;
}

// Whether the sums are further and further behind the gradients. Then iterations do not yet wait
// for sums, but they will. `summed` says when the first sums were there.
bool falls_behind(const std::vector<double>& ends, const std::vector<double>& summed,
                  std::int64_t cycle) {
  const auto behind = [&](std::int64_t i) {
    return summed[static_cast<std::size_t>(i)] - ends[static_cast<std::size_t>(i)];
  };
  const std::int64_t last = std::ssize(summed) - 1;
  if (last < cycle) return true;  // not known
  const double more = behind(last) - behind(last - cycle);
  return more > 2 * kNanosecond + 1e-7 * (summed.back() - ends.front());
}

// All ranks of a simulation. They are fibers of one thread, so they share memory without locks.
class Job {
 public:
  Job(const Profile& profile, const Simulation& s)
      : profile_(profile),
        s_(s),
        algo_(strategy_named(s.algo)),
        host_(host_of(profile, s)),
        compressor_(without_content(make_compressor(compressor_in_ring(s.compress)), host_)),
        servers_(algo_.servers(s.options)),
        network_({.ranks = s.workers + servers_,
                  .link = s.link,
                  .other_links = s.slow_links,
                  .ranks_per_node = s.ranks_per_node,
                  .inner = s.inner,
                  .one_for_all = s.one_for_all,
                  .guests_from = s.servers_share_nodes && servers_ > 0 ? s.workers : 0}),
        period_(value_of(algo_, s.options, "--period")),
        delayed_(algo_.family == Family::delayed) {
    if (parse_compression(s.compress)) codecs_.emplace(s.compress, s.workers, host_);
    run_.cold = cold_iterations(algo_, s.options);
    iterations_ = last_ = std::max(s.iterations, least_iterations());
    run_.first_counted = run_.cold + 1;
    if (s.keep_spans) network_.note_use();
  }

  SimulatedRun run() {
    const int ranks = s_.one_for_all ? 1 : s_.workers + servers_;
    run_.ranks.resize(static_cast<std::size_t>(ranks));
    in_virtual_time([&] {
      {
        std::vector<Thread> threads;
        for (int rank = 0; rank < ranks; ++rank)
          threads.push_back(start_thread("", Work::computes, [this, rank] { run_rank(rank); }));
      }
      run_.events = VirtualTime::here()->events();
    });
    if (failure_) std::rethrow_exception(failure_);
    if (algo_.asynchronous()) count_asynchronous();
    run_.use = network_.use();
    return std::move(run_);
  }

 private:
  // If a sum takes slightly longer than computing, by one part in n, iterations wait for sums only
  // after (K-2)·n iterations.
  std::int64_t least_iterations() const {
    constexpr std::int64_t kParts = 50;
    const std::int64_t ahead = value_of(algo_, s_.options, "--pipe-k") - 2;
    return run_.cold + std::max(period_, kParts * ahead);
  }

  static HostCost host_of(const Profile& profile, const Simulation& s) {
    const auto found = profile.host.find(s.compress);
    return found == profile.host.end() ? HostCost{} : found->second;
  }

  void run_rank(int rank) {
    try {
      Communication communication([&] {
        auto transport = network_.transport(rank);
        transport->set_stall_timeout(kStallTimeout);
        return transport;
      });
      communication.call([&] {
        Spans& spans = communication.spans();
        spans.count_from(run_.cold + 1);
        if (s_.keep_spans) spans.keep_all();
      });
      rank < s_.workers ? work(rank, communication) : serve(rank, communication);
    } catch (const JobFailed&) {  // another rank has failed
    } catch (const std::exception& e) {
      if (!failure_) failure_ = std::current_exception();
      network_.fail(e.what());
    }
  }

  // Null without a codec.
  std::unique_ptr<Codec> make_codec() { return codecs_ ? codecs_->make() : nullptr; }

  StrategyContext context(PhantomNet& net, Codec* codec, Communication& communication) const {
    return {.parameters = net.set,
            .optimizer = net.optimizer,
            .spans = net.spans,
            .communication = communication,
            .compressor = *compressor_,
            .codec = codec,
            .workers = s_.workers,
            .options = s_.options,
            .seed = s_.seed};
  }

  void work(int rank, Communication& communication) {
    PhantomNet net(profile_, host_);
    net.spans.count_from(run_.cold + 1);
    if (s_.keep_spans) net.spans.keep_all();
    Slowness slowness(profile_, s_, rank);
    const auto codec = make_codec();
    const auto strategy = make_strategy(algo_.name, context(net, codec.get(), communication));
    try {
      for (std::int64_t t = 1; t <= last_; ++t) {
        begun_ = std::max(begun_, t);
        net.spans.set_iteration(t);
        strategy->before_step(t);
        net.step(*strategy, slowness());
        strategy->after_backward(t);
        if (algo_.asynchronous())
          ends_of_all_.push_back(seconds_of(Clock::now().time_since_epoch()));
        else if (rank == 0)
          note_end(*strategy, communication);
      }
      if (algo_.asynchronous()) first_ended_ = std::min(first_ended_, ends_of_all_.back());
      constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
      net.spans.count_from(kNever);
      strategy->finish();
      report(rank, communication, net.spans);
    } catch (const std::exception& e) {
      communication.stop(e.what());
      throw;
    }
  }

  void serve(int rank, Communication& communication) {
    PhantomNet net(profile_, host_);
    communication.call([&] {
      const auto codec = make_codec();
      const auto server = algo_.make_server(context(net, codec.get(), communication));
      if (algo_.asynchronous())
        server->serve(1, last_);
      else
        for (std::int64_t t = 1; t <= last_; ++t) server->serve(t, t);
      server->finish();
    });
    report(rank, communication, net.spans);
  }

  // Ends the job once times repeat. No worker has begun an iteration after the last one, because
  // only one fiber runs at a time. Servers may already wait for the next one.
  void note_end(const Strategy& strategy, Communication& communication) {
    run_.ends.push_back(seconds_of(Clock::now().time_since_epoch()));
    if (run_.plan.text.empty()) run_.plan = strategy.plan();
    if (run_.repeats) return;
    const std::int64_t warm = std::ssize(run_.ends) - run_.cold;
    if (warm >= 0) run_.last_counted = run_.cold + warm / period_ * period_;
    if (s_.random(profile_)) return;
    if (delayed_)  // the communication thread gets to it when it has summed this gradient
      communication.post(noted_, [this] {
        summed_.push_back(seconds_of(Clock::now().time_since_epoch()));
        return true;
      });
    const std::int64_t cycle = cycle_of(run_.ends, run_.cold, period_);
    if (cycle == 0 || (delayed_ && falls_behind(run_.ends, summed_, cycle))) return;
    run_.repeats = true;
    run_.last_counted = std::ssize(run_.ends);
    run_.first_counted = run_.last_counted - cycle + 1;
    last_ = std::min(iterations_, begun_ + (servers_ > 0 ? 1 : 0));
  }

  // Once a worker has finished, fewer of them compute. So later iterations do not count.
  void count_asynchronous() {
    std::ranges::sort(ends_of_all_);
    const auto workers = static_cast<std::size_t>(s_.workers);
    for (std::size_t i = workers; i <= ends_of_all_.size(); i += workers)
      run_.ends.push_back(ends_of_all_[i - 1]);
    const auto counted = std::ranges::upper_bound(run_.ends, first_ended_) - run_.ends.begin();
    run_.last_counted =
        run_.cold + std::max<std::int64_t>(1, (counted - run_.cold) / period_) * period_;
  }

  void report(int rank, Communication& communication, const Spans& compute) {
    communication.call([&] {
      RankReport& own = run_.ranks[static_cast<std::size_t>(rank)];
      own.rank = rank;
      own.server = rank >= s_.workers;
      own.bytes_sent = communication.transport().bytes_sent();
      own.take(compute, communication.spans(), {});
    });
  }

  const Profile& profile_;
  const Simulation& s_;
  const StrategyInfo& algo_;
  HostCost host_;
  std::unique_ptr<Compressor> compressor_;
  std::optional<PhantomCodecs> codecs_;
  int servers_;
  SimulatedNetwork network_;
  SimulatedRun run_;
  std::exception_ptr failure_;
  std::int64_t period_;         // in which iterations are alike
  bool delayed_;                // iterations do not wait for their own sums
  std::vector<double> summed_;  // when the sums of the first worker's gradients were there
  BlockingQueue<bool> noted_;
  std::int64_t iterations_ = 0, begun_ = 0, last_ = 0;
  // Of asynchronous workers.
  std::vector<double> ends_of_all_;                          // of iterations
  double first_ended_ = std::numeric_limits<double>::max();  // when a worker had finished
};

}  // namespace

std::vector<double> SimulatedRun::counted_s() const {
  std::vector<double> all;
  for (std::int64_t t = first_counted; t <= last_counted; ++t) {
    const auto i = static_cast<std::size_t>(t - 1);
    all.push_back(ends[i] - (i > 0 ? ends[i - 1] : 0));
  }
  return all;
}

double SimulatedRun::mean_s() const { return mean(counted_s()); }

void require_alike(const Profile& profile, const Simulation& s) {
  const auto refuse = [&](const char* why) {
    throw UserError("{}: one rank cannot stand for all, because {}", s.algo, why);
  };
  if (strategy_named(s.algo).servers(s.options) > 0) refuse("servers are not workers");
  if (strategy_named(s.algo).asynchronous()) refuse("they do not wait for each other");
  if (!s.slow_ranks.empty() || !s.slow_links.empty()) refuse("some are slower");
  if (s.ranks_per_node > 1) refuse("some share a node");
  if (s.random(profile)) refuse("they compute for different times (--jitter 0 lets them be alike)");
}

SimulatedRun simulate(const Profile& profile, const Simulation& s) {
  require_simulable(s.compress);
  if (!s.one_for_all) return Job(profile, s).run();
  require_alike(profile, s);
  try {
    return Job(profile, s).run();
  } catch (const Stalled&) {  // it waits for a message that a rank like it does not send
    throw UserError(
        "{}: one rank cannot stand for all, because not all have an equal part in every sum",
        s.algo);
  }
}

}  // namespace tandem
