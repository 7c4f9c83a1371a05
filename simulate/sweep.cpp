#include "simulate/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/statistics.h"
#include "simulate/phantom_codec.h"
#include "speedup/earlier_results.h"
#include "speedup/environment.h"
#include "speedup/excerpt.h"
#include "speedup/results_file.h"
#include "train/timeline.h"

namespace tandem {
namespace {

constexpr int kAllUpTo = 64;  // workers
constexpr int kTimelineUpTo = 8;
// Stacks, queues and messages; a little more than measured.
constexpr double kBytesPerRank = 400e3, kBytesPerRankWithManySums = 4e6;

std::string text_of(const Simulation& s) {
  std::vector<std::string> parts;
  for (const auto& [rank, speed] : s.slow_ranks)
    parts.push_back(fmt::format("rank {} computes at {:g} of the speed", rank, speed));
  for (const auto& [rank, speed] : s.slow_links)
    parts.push_back(fmt::format("rank {} has {:g} Gbit/s and {:g} us", rank,
                                8e-9 * speed.bytes_per_s, 1e6 * speed.latency_s));
  if (s.ranks_per_node > 1)
    parts.push_back(fmt::format("{} ranks per node with {:g} Gbit/s and {:g} us between them",
                                s.ranks_per_node, 8e-9 * s.inner.bytes_per_s,
                                1e6 * s.inner.latency_s));
  if (s.servers_share_nodes) parts.push_back("servers share the nodes of workers");
  for (const StrategyOption& option : strategy_options())
    if (const auto given = s.options.find(option.name); given != s.options.end())
      parts.push_back(fmt::format("{} {}", option.name, option.text(given->second)));
  return parts.empty() ? "" : fmt::format("; {}", fmt::join(parts, "; "));
}

// The means over all workers.
Breakdown breakdown_of(const SimulatedRun& run) {
  Breakdown b;
  const auto counted = static_cast<double>(std::ssize(run.ends) - run.cold);
  double workers = 0;
  for (const RankReport& rank : run.ranks) {
    if (rank.server) continue;
    ++workers;
    const double compute = rank.compute(SpanKind::forward) + rank.compute(SpanKind::backward) +
                           rank.compute(SpanKind::update);
    const double compress = rank.communication(SpanKind::compress);
    const double all =
        compress + rank.communication(SpanKind::sum) + rank.communication(SpanKind::communicate);
    const double waited = std::min(rank.compute(SpanKind::wait), all);
    b.compute += compute;
    b.compress += std::min(compress, waited);
    b.exposed += waited - std::min(compress, waited);
    b.hidden += all - waited;
  }
  for (double* part : {&b.compute, &b.compress, &b.exposed, &b.hidden})
    *part *= 1e3 / (counted * workers);
  b.other = std::max(0.0, 1e3 * run.mean_s() - b.iteration());
  return b;
}

void take(const SimulatedRun& run, const std::string& ranks, int stands_for, Cell& cell) {
  std::vector<double> ms;
  for (const double seconds : run.counted_s()) ms.push_back(1e3 * seconds);
  cell.repeats_ms = {mean(ms)};
  cell.median_ms = median(ms);
  cell.breakdown = breakdown_of(run);
  cell.simulated_ranks = ranks;
  double bytes = 0;
  for (const RankReport& rank : run.ranks) bytes += static_cast<double>(rank.bytes_sent);
  cell.bytes_per_iteration = stands_for * bytes / static_cast<double>(run.ends.size());
  if (!run.ranks.front().compute_spans.empty())
    cell.timeline = excerpt(trace_of(run), std::ssize(run.ends), cell.workers, mean(ms));
}

void check_memory(const Profile& profile, const Simulation& s) {
  const StrategyInfo& info = strategy_named(s.algo);
  const int ranks = s.workers + info.servers(s.options);
  double each =
      info.measures_until > 0 || info.make_server ? kBytesPerRankWithManySums : kBytesPerRank;
  if (parse_compression(s.compress))
    each += PhantomCodecs(s.compress, s.workers, {}).bytes_of_messages(profile.elements());
  const double needed = ranks * each;
  const double there = static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) *
                       static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed > there)
    throw UserError("{} ranks need {:.1f} GB of memory, and {:.1f} GB are free; simulate fewer",
                    ranks, needed / 1e9, there / 1e9);
}

}  // namespace

Results Sweep::begin() const {
  Results r{.bench = "simulate",
            .simulated = true,
            .net = valid_text(profile.net),
            .data = valid_text(fmt::format("Profile: {}.", profile.source)),
            .options = valid_text(what + text_of(shared)),
            .batch_per_worker = profile.batch,
            .iterations = shared.iterations,
            .timed = shared.iterations,
            .repeats = 1,
            .parameters = profile.elements(),
            .seed = shared.seed,
            .environment = this_machine(false)};
  r.environment.command = valid_text(command_line);
  r.environment.transport = "simulation";
  for (const int count : workers)
    for (const std::string& link : links)
      for (const std::string& algo : algos)
        for (const std::string& compress : compressors) {
          const StrategyInfo& info = strategy_named(algo);
          if (info.rows.label.empty())
            throw UserError("--algo {}: it has one worker, so there is nothing to simulate", algo);
          info.require_possible(count, compress, shared.options);
          require_simulable(compress);
          Cell cell{.name = row_name(info.rows.label, compress),
                    .algo = algo,
                    .compress = compress,
                    .workers = count,
                    .link = link};
          const Simulation s = simulation_of(cell);
          const int ranks = count + info.servers(s.options);
          if (!s.slow_ranks.empty() && s.slow_ranks.rbegin()->first >= ranks)
            throw UserError("--slow-rank {}: there are {} ranks", s.slow_ranks.rbegin()->first,
                            ranks);
          if (!s.slow_links.empty() && s.slow_links.rbegin()->first >= ranks)
            throw UserError("--slow-link {}: there are {} ranks", s.slow_links.rbegin()->first,
                            ranks);
          if (mode == SimulationMode::message) check_memory(profile, s);
          if (mode == SimulationMode::folded) require_alike(profile, s);
          r.cells.push_back(std::move(cell));
        }
  if (!profile.host.empty())
    for (const std::string& compress : compressors)
      if (!profile.host.contains(compress))
        throw UserError("the profile does not say what a host needs for --compress {}", compress);
  return r;
}

void continue_sweep(const Results& earlier, Results& now) {
  if (!earlier.simulated) throw UserError("it holds measured results, not simulated ones");
  require_same("the net", earlier.net, now.net);
  require_same("the profile", earlier.data, now.data);
  require_same("a batch of", earlier.batch_per_worker, now.batch_per_worker);
  require_same("parameters:", earlier.parameters, now.parameters);
  require_same("--iterations", earlier.iterations, now.iterations);
  require_same("--seed", earlier.seed, now.seed);
  require_same("options", fmt::format("'{}'", earlier.options), fmt::format("'{}'", now.options));
  for (Cell& cell : now.cells)
    if (const Cell* finished = earlier.beside(cell, cell.name)) cell = *finished;
  keep_others(earlier, now);
  if (std::ranges::all_of(now.cells, &Cell::done))
    now.environment = earlier.environment;
  else
    require_same("Tandem", earlier.environment.tandem, now.environment.tandem);
}

Simulation Sweep::simulation_of(const Cell& cell) const {
  Simulation s = shared;
  s.algo = cell.algo;
  s.compress = cell.compress;
  s.workers = cell.workers;
  s.link = parse_link(cell.link);
  const StrategyInfo& info = strategy_named(cell.algo);
  std::erase_if(s.options, [&](const auto& option) { return !info.has_option(option.first); });
  s.keep_spans = s.keep_spans || (keep_timelines && cell.workers <= kTimelineUpTo);
  return s;
}

SimulatedRun Sweep::run(Cell& cell) const {
  Simulation s = simulation_of(cell);
  const auto all = [&](const std::string& why) {
    check_memory(profile, s);
    s.one_for_all = false;
    SimulatedRun run = simulate(profile, s);
    take(run, "all: " + why, 1, cell);
    return run;
  };
  if (mode == SimulationMode::message) return all("--mode message");
  if (mode == SimulationMode::automatic && cell.workers <= kAllUpTo)
    return all(fmt::format("there are at most {}", kAllUpTo));
  s.one_for_all = true;
  try {
    SimulatedRun run = simulate(profile, s);
    take(run, mode == SimulationMode::folded ? "one: --mode folded" : "one: they are alike",
         cell.workers, cell);
    return run;
  } catch (const UserError&) {
    if (mode == SimulationMode::folded) throw;
    return all("they are not alike");
  }
}

std::vector<double> normal_spread(double deviation) {
  constexpr int kQuantiles = 101;
  std::vector<double> all;
  // Bisection of the distribution function: the C library has no inverse.
  for (int i = 0; i < kQuantiles; ++i) {
    const double share = (i + 0.5) / kQuantiles;
    double low = -5, high = 5;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
    }
    all.push_back(std::max(0.01, 1 + deviation * low));
  }
  return all;
}

std::string trace_of(const SimulatedRun& run) {
  Summary summary;
  summary.ranks = run.ranks;
  summary.plan = run.plan;
  return to_chrome_trace(summary);
}

std::string explanation(const SimulatedRun& run) {
  struct Line {
    Spans::Span span;
    bool communicates;
  };
  // The last iteration but one: pipelines are full, and the end is not near.
  const std::int64_t shown = std::max<std::int64_t>(1, std::ssize(run.ends) - 1);
  const auto time_of = [&](std::int64_t t) {
    return Clock::time_point(from_seconds(t > 0 ? run.ends[static_cast<std::size_t>(t - 1)] : 0));
  };
  const auto begin = time_of(shown - 1), end = time_of(shown);
  std::vector<Line> lines;
  for (const bool communicates : {false, true})
    for (const Spans::Span& span :
         communicates ? run.ranks[0].communication_spans : run.ranks[0].compute_spans)
      if (span.end > begin && span.begin < end) lines.push_back({span, communicates});
  std::ranges::stable_sort(lines, {}, [](const Line& l) { return l.span.begin; });
  // A ring adds many blocks, one after the other: they become one line.
  std::map<std::pair<SpanKind, std::int64_t>, std::pair<std::int64_t, Clock::duration>> added;
  const auto is_part = [](const Line& l) {
    return l.communicates && (l.span.kind == SpanKind::sum || l.span.kind == SpanKind::compress);
  };
  for (const Line& l : lines)
    if (is_part(l)) {
      auto& [count, time] = added[{l.span.kind, l.span.iteration}];
      ++count;
      time += l.span.end - l.span.begin;
    }
  std::erase_if(lines, is_part);

  const auto ms = [&](Clock::duration d) { return 1e3 * seconds_of(d); };
  std::string text =
      fmt::format("iteration {} of worker 0, {:.3f} ms: when, which thread, what, how long\n",
                  shown, ms(end - begin));
  for (const Line& line : lines)
    text += fmt::format(
        "{:>12.3f} ms  {:<13} {:<11} {:>10.3f} ms{}\n", ms(line.span.begin - begin),
        line.communicates ? "communication" : "compute",
        kSpanNames[static_cast<std::size_t>(line.span.kind)], ms(line.span.end - line.span.begin),
        line.span.iteration == shown ? "" : fmt::format("  of iteration {}", line.span.iteration));
  for (const auto& [of, sum] : added)
    text += fmt::format("{:>15}  {:<13} {:<11} {:>10.3f} ms in {} parts, meanwhile{}\n", "",
                        "communication", kSpanNames[static_cast<std::size_t>(of.first)],
                        ms(sum.second), sum.first,
                        of.second == shown ? "" : fmt::format(", of iteration {}", of.second));
  return text + "\n";
}

}  // namespace tandem
