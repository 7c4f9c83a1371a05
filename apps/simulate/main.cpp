// What would more workers do? Simulates training jobs in virtual time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/hash.h"
#include "base/virtual_time.h"
#include "dist/codecs/codec_table.h"
#include "dist/transport/mpi_launch.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "simulate/sweep.h"
#include "speedup/environment.h"
#include "speedup/folder.h"
#include "speedup/results_file.h"
#include "speedup/table.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/files.h"
#include "train/json_input.h"
#include "train/profile_file.h"
#include "train/validators.h"

using namespace tandem;

namespace {

struct Options {
  Sweep sweep;
  std::string out, trace, measured;
  bool again = false, quiet = false, explain = false;
};

// "3=0.5" is rank 3 and 0.5.
std::pair<int, std::string> of_rank(const std::string& option, const std::string& text) {
  const auto at = text.find('=');
  std::string rank = text.substr(0, at);
  if (at == std::string::npos || !rules::whole(0, 1 << 16).complaint(rank).empty())
    throw UserError("{} {}: it must be RANK=VALUE, such as 3={}", option, shown(text, 40),
                    option == "--slow-rank" ? "0.5" : "1gbe");
  return {std::stoi(rank), text.substr(at + 1)};
}

double number_in(const std::string& option, std::string text, const std::string& must_be,
                 double low, double high) {
  const Rule rule = rules::number(must_be, [=](double v) { return v >= low && v <= high; });
  if (const std::string complaint = rule.complaint(text); !complaint.empty())
    throw UserError("{}: {}", option, complaint);
  return std::stod(text);
}

void set_jitter(const std::string& jitter, Sweep& sweep) {
  if (jitter == "profile") {
    sweep.shared.scatters = !sweep.profile.spread.empty();
    return;
  }
  const bool percent = jitter.ends_with('%');
  const double deviation =
      number_in("--jitter", percent ? jitter.substr(0, jitter.size() - 1) : jitter,
                "profile or a number of per cent from 0 to 100, such as 5%", 0, 100) /
      100;
  sweep.shared.scatters = deviation > 0;
  sweep.profile.iterations.clear();
  sweep.profile.spread = deviation > 0 ? normal_spread(deviation) : std::vector<double>();
}

// Returns false after --help or --version, which it has printed.
bool parse(int argc, char** argv, Options& o) {
  CLI::App app(
      "Simulates training in virtual time: the strategies, rings and servers of a real run, with\n"
      "computing that takes the time of a profile. Prints the time of an iteration for every\n"
      "algorithm, link and number of workers. The profile comes from a real run (--profile of\n"
      "the training programs) or from a net and a GPU.\n");
  set_conventions(app);
  std::string net, gpu, profile, mode = "auto", inner = "none", jitter = "profile";
  std::vector<int> workers = {4, 8, 16, 32, 64};
  std::vector<std::string> links = {"10gbe"}, algos = {"d-sync", "merge", "pipe-sgd"},
                           compressors = {"none"}, slow_ranks, slow_links;
  std::int64_t batch = 0;
  Simulation& s = o.sweep.shared;
  s.iterations = 30;
  const auto add = [&](const char* group, const char* name, auto& value, const char* type,
                       const std::string& help) {
    return app.add_option(name, value, wrapped(help))->type_name(type)->group(group);
  };
  const auto list = [&](CLI::Option* option, const char* text) {
    option->delimiter(',')->option_text(text);
    return option;
  };
  constexpr const char *kWhat = "What is trained", *kCluster = "Cluster", *kHow = "Simulation",
                       *kOutput = "Output";
  add(kWhat, "--profile", profile, "FILE", "A file that training programs write with --profile")
      ->default_str("");
  add(kWhat, "--net", net, "NAME", fmt::format("One of {}", fmt::join(net_names(), ", ")))
      ->default_str("");
  add(kWhat, "--gpu", gpu, "NAME",
      fmt::format("For --net: one of {}", fmt::join(device_speed_names(), ", ")))
      ->default_str("");
  add(kWhat, "--batch", batch, "N", "For --net: samples of a worker per iteration; default: 32")
      ->default_str("")
      ->transform(whole(1, 1'000'000));
  list(add(kWhat, "--algo", algos, "NAME",
           fmt::format("One or several of {}", fmt::join(strategy_names(), ", "))),
       "NAME=d-sync,merge,pipe-sgd")
      ->check(one_of(strategy_names()));
  list(add(kWhat, "--compress", compressors, "NAME",
           "One or several, as the training programs have them, such as none,quant8,topk:0.01"),
       "NAME=none")
      ->check(wrong_compression);
  for (const StrategyOption& option : strategy_options())
    if (option.warmup == StrategyOption::Warmup::no)
      add_strategy_option(app, "Algorithms", option, s.options);
  list(add(kCluster, "--workers", workers, "N", "One or several numbers of workers"),
       "N=4,8,16,32,64")
      ->transform(whole(1, 1 << 16));
  list(add(kCluster, "--link,--links", links, "SPEED",
           "One or several links, such as 1gbe,10gbe or 25gbit/20us; none: no limit"),
       "SPEED=10gbe");
  list(add(kCluster, "--slow-rank", slow_ranks, "RANK=SPEED",
           "This rank computes at this part of the others' speed, such as 3=0.5"),
       "RANK=SPEED");
  list(add(kCluster, "--slow-link", slow_links, "RANK=SPEED",
           "This rank's node has another link, such as 3=1gbe"),
       "RANK=SPEED");
  add(kCluster, "--ranks-per-node", s.ranks_per_node, "N",
      "Ranks that share a node and its link, counted from rank 0; servers are the last ranks, and "
      "the last node may have fewer")
      ->transform(whole(1, 1024));
  app.add_flag("--servers-share-nodes", s.servers_share_nodes,
               wrapped("Servers have no nodes of their own: the first is on the first node, and so "
                       "on"))
      ->group(kCluster);
  add(kCluster, "--inner-link", inner, "SPEED", "Between the ranks of a node");
  add(kCluster, "--jitter", jitter, "PERCENT",
      "How much computing scatters from iteration to iteration: a standard deviation in per cent, "
      "such as 5%, or profile: as was measured");
  add(kHow, "--iterations", s.iterations, "N", "At most; a simulation ends when iterations repeat")
      ->transform(whole(12, 1'000'000));
  add(kHow, "--seed", s.seed, "N", "Determines how computing scatters")
      ->transform(whole(0, std::numeric_limits<std::uint64_t>::max()));
  add(kHow, "--mode", mode, "NAME",
      "message: simulate every rank. folded: one that stands for all, if they are alike. auto: "
      "message for up to 64 workers, folded for more if possible")
      ->check(one_of({"message", "folded", "auto"}));
  add(kOutput, "--out", o.out, "DIR",
      "Folder for tables, figures and report.html, created if missing. To continue an interrupted "
      "sweep, run the same command again")
      ->default_str("");
  add(kOutput, "--measured", o.measured, "FILE",
      "results.json of speedup: shows its times beside the simulated ones")
      ->default_str("");
  add(kOutput, "--trace", o.trace, "FILE",
      "The timeline of a single simulation, for ui.perfetto.dev")
      ->default_str("");
  app.add_flag("--explain", o.explain, "List what worker 0 does in one iteration")->group(kOutput);
  app.add_flag("--again", o.again, "Discard the results in DIR")->group(kOutput);
  app.add_flag("--quiet", o.quiet, "Print only the table and errors")->group(kOutput);
  if (!parse_command_line(app, argc, argv)) return false;

  if (profile.empty() == net.empty()) throw UserError("give either --profile or --net with --gpu");
  if (net.empty() != gpu.empty()) throw UserError("--net and --gpu belong together");
  if (batch > 0 && net.empty()) throw UserError("--batch has no effect with --profile");
  if (inner != "none" && s.ranks_per_node == 1 && !s.servers_share_nodes)
    throw UserError("--inner-link has no effect without --ranks-per-node or --servers-share-nodes");
  if (s.servers_share_nodes && std::ranges::none_of(algos, [](const std::string& a) {
        return strategy_named(a).make_server != nullptr;
      }))
    throw UserError("--servers-share-nodes has no effect with --algo {}", fmt::join(algos, ","));
  for (const StrategyOption& option : strategy_options()) {
    if (app.get_option_no_throw(option.name) && app.count(option.name) > 0) {
      const auto with = strategies_with(option.name);
      if (std::ranges::none_of(algos, [&](const std::string& a) {
            return std::ranges::find(with, a) != with.end();
          }))
        throw UserError("{} has no effect with --algo {}", option.name, fmt::join(algos, ","));
    } else {
      s.options.erase(option.name);
    }
  }
  for (const std::string& link : links) parse_link(link);
  const auto check_once = [](const char* option, const auto& given) {
    if (std::set(given.begin(), given.end()).size() != given.size())
      throw UserError("{}: a value is there twice", option);
  };
  check_once("--algo", algos);
  check_once("--compress", compressors);
  check_once("--link", links);
  check_once("--workers", workers);
  for (const std::string& text : slow_ranks) {
    const auto [rank, value] = of_rank("--slow-rank", text);
    s.slow_ranks[rank] =
        number_in("--slow-rank", value, "a number from 0.001 to 1000", 0.001, 1000);
  }
  for (const std::string& text : slow_links) {
    const auto [rank, value] = of_rank("--slow-link", text);
    s.slow_links[rank] = parse_link(value);
    if (!s.slow_links[rank].limited())
      throw UserError("--slow-link {}: a link without a limit is not slow", shown(text, 40));
  }
  s.inner = parse_link(inner);

  Sweep& sweep = o.sweep;
  sweep.profile = !profile.empty()
                      ? read_profile(profile)
                      : profile_of(net_named(net), device_speed_named(gpu), batch > 0 ? batch : 32);
  const std::string profile_text = to_text(sweep.profile);
  const std::uint64_t hash = hash_of(std::as_bytes(std::span(profile_text)));
  set_jitter(jitter, sweep);
  if (!s.scatters) jitter = "0";
  sweep.mode = mode == "message"  ? SimulationMode::message
               : mode == "folded" ? SimulationMode::folded
                                  : SimulationMode::automatic;
  sweep.workers = workers;
  sweep.links = links;
  sweep.algos = algos;
  sweep.compressors = compressors;
  sweep.what = fmt::format("profile {:08x}, jitter {}, mode {}", hash & 0xffffffff, jitter, mode);
  s.keep_spans = o.explain || !o.trace.empty();
  sweep.keep_timelines = !o.out.empty();
  const std::size_t cells = workers.size() * links.size() * algos.size() * compressors.size();
  if (s.keep_spans && cells > 1)
    throw UserError("--trace and --explain show one simulation, but this command has {}", cells);
  return true;
}

void take_measured(const std::string& path, Results& results) {
  const Results measured = read_results(path);
  if (measured.simulated) throw UserError("--measured {}: its results are simulated", path);
  if (measured.parameters != results.parameters)
    throw UserError("--measured {}: it is about {}, with {} parameters; {} has {}", path,
                    measured.net, measured.parameters, results.net, results.parameters);
  for (Cell& cell : results.cells)
    if (const Cell* other = measured.beside(cell, cell.name))
      cell.measured_ms = other->iteration_ms();
}

// Keeps finished cells, so that nothing is simulated twice.
void take_earlier(const Options& o, const ResultsFolder& folder, Results& results) {
  if (o.again || !folder.holds_results()) return;
  try {
    continue_sweep(folder.read(), results);
  } catch (const UserError& e) {
    throw UserError("--out {}: {}; choose another folder, or use --again", o.out,
                    shown(e.what(), 400));
  }
}

void run(const Options& o) {
  if (mpi_launch()) throw UserError("simulate needs one process: run it without mpiexec");
  if (!has_virtual_time()) in_virtual_time([] {});  // says what is missing
  if (!o.trace.empty()) check_writable("--trace", o.trace);
  Results results = o.sweep.begin();  // complains before a folder is made
  std::optional<ResultsFolder> folder;
  if (!o.out.empty()) folder.emplace("simulate", o.out);
  if (folder) take_earlier(o, *folder, results);
  for (Cell& cell : results.cells) cell.measured_ms.reset();  // of an earlier command
  if (!o.measured.empty()) take_measured(o.measured, results);
  WriteFailures failures("simulate");
  Console console(stdout, failures);
  if (!o.quiet)
    console.print(fmt::format(
        "{}: {} parameters in {} tensors; forward {:.4g} ms, backward {:.4g} ms\n{}\n", results.net,
        results.parameters, o.sweep.profile.tensors.size(), 1e3 * o.sweep.profile.forward_s(),
        1e3 * o.sweep.profile.backward_s(), results.data));
  std::size_t number = 0;
  for (Cell& cell : results.cells) {
    ++number;
    if (cell.done()) continue;
    const auto start = Clock::now();
    const SimulatedRun run = o.sweep.run(cell);
    const double seconds = seconds_between(start, Clock::now());
    results.environment.date = date_now();
    if (folder) folder->write_meanwhile(results, failures);
    if (!o.quiet)
      console.print(fmt::format(
          "[{}/{}] {}, {}: {} ms; {} iterations{}, {:.1f} s, {:.2f} million events per second; "
          "{}{}\n",
          number, results.cells.size(), cell.name, cell.setting(), ms_text(cell.iteration_ms()),
          run.ends.size(), run.repeats ? ", the last of which repeat" : "", seconds,
          static_cast<double>(run.events) / seconds / 1e6, cell.simulated_ranks,
          run.plan.text.empty() ? "" : "; plan: " + run.plan.text));
    if (!o.trace.empty()) write_file(o.trace, trace_of(run));
    if (o.explain) console.print("\n" + explanation(run));
  }
  console.print((o.quiet ? "" : "\n") + to_text(results) + "\n");
  if (folder && folder->write_all(results, failures) && !o.quiet)
    console.print(folder->report().string() + "\n");
  failures.throw_if_any();
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("simulate", [&] {
    Options options;
    if (!parse(argc, argv, options)) return;
    options.sweep.command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
    run(options);
  });
}
