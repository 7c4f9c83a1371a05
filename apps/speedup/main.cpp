// The paper's experiment in one command: trains a benchmark with every algorithm, one after the
// other, and compares them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "dist/transport/link_speed.h"
#include "dist/transport/mpi_launch.h"
#include "speedup/environment.h"
#include "speedup/folder.h"
#include "speedup/plan.h"
#include "speedup/table.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/console.h"
#include "train/json_input.h"
#include "train/reporting.h"
#include "train/validators.h"

using namespace tandem;
namespace fs = std::filesystem;

namespace {

struct Options {
  Comparison plan;
  fs::path out;
  double target_accuracy = 0;  // 0: what all algorithms reach
  double optimum = 0;          // 0: unknown
  bool again = false, quiet = false;
};

template <class T>
const T& named(const std::vector<T>& all, std::string T::*name, const std::string& wanted,
               const char* option) {
  const auto found = std::ranges::find_if(all, [&](const T& each) { return each.*name == wanted; });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const T& each : all) names.push_back(each.*name);
  throw UserError("{} {}: choose from {}", option, wanted, fmt::join(names, ", "));
}

std::string benches_help() {
  std::vector<std::string> names;
  for (const Bench& b : all_benches()) names.push_back(b.program);
  return wrapped(fmt::format("One of {}", fmt::join(names, ", ")));
}

std::string algos_help() {
  std::vector<std::string> others;
  for (const Algorithm& a : all_algorithms())
    if (!a.by_default) others.push_back(a.name);
  return wrapped(
      fmt::format("Compare only these, such as D-Sync,Pipe-SGD+T. Default: the paper's, "
                  "that is, all except {}",
                  fmt::join(others, ", ")));
}

// Returns false after --help or --version, which it has printed. Removes what follows -- from the
// arguments.
bool parse(int argc, char** argv, Options& o) {
  const auto end = std::find(argv, argv + argc, std::string_view("--"));
  const std::vector<std::string> handed_on(end == argv + argc ? end : end + 1, argv + argc);
  argc = static_cast<int>(end - argv);

  CLI::App app(
      "Reproduces the speedup table of the Pipe-SGD paper: trains a benchmark with PS-Sync,\n"
      "D-Sync and Pipe-SGD, without and with 16-bit truncation (+T) and 8-bit quantization\n"
      "(+Q), one after the other from the same seed, and compares. DIR gets results.json,\n"
      "results.csv, table.md, figures and report.html. To continue an interrupted comparison,\n"
      "run the same command again.\n\n"
      "Words after -- are options for the benchmark, such as -- --lr 0.1 --warmup-epochs 5;\n"
      "those that only one algorithm has are not passed to the others. By default a pipeline\n"
      "opens at once.\n");
  set_conventions(app);
  Comparison& plan = o.plan;
  std::string bench = "mnist_mlp", data, mpiexec, out;
  std::vector<int> workers = {4};
  std::vector<std::string> links = {"1gbe"}, algos, compressions;
  std::int64_t iterations = 0, batch = 0, threads = 0;
  constexpr std::uint64_t kMost = 1'000'000'000;
  const auto add = [&](const char* name, auto& value, const char* type, const char* help) {
    return app.add_option(name, value, help)->type_name(type);
  };
  const auto without_default = [&](const char* name, auto& value, const char* type,
                                   const char* help) {
    return add(name, value, type, help)->default_str("");
  };
  add("--bench", bench, "NAME", benches_help().c_str());
  add("--workers", workers, "N", "One or several numbers of workers, such as 2,4,8")
      ->delimiter(',')
      ->option_text("N=4")
      ->transform(whole(2, 1024));
  add("--link,--links", links, "SPEED",
      "One or several links, such as 100mbit,1gbe,10gbe\n"
      "or 2.5gbit/80us; none: no limit")
      ->delimiter(',')
      ->option_text("SPEED=1gbe");
  without_default("--algos", algos, "NAME", algos_help().c_str())
      ->delimiter(',')
      ->option_text("NAME");
  without_default("--compress", compressions, "NAME",
                  "Compare each algorithm with these compressions, such as\n"
                  "none,trunc16,topk:0.01. --algos then names algorithms\n"
                  "without +T and +Q; by default, those of the paper")
      ->delimiter(',')
      ->option_text("NAME")
      ->check(wrong_compression);
  without_default("--iterations", iterations, "N",
                  "Per run; default: 600 for mnist_mlp, 300 for\n"
                  "cifar_convex, 200 for cifar_cnn, 20 for the others")
      ->transform(whole(1, kMost));
  without_default("--timed", plan.timed, "N",
                  "Time only N iterations over each link; the accuracy is\n"
                  "still that of all --iterations, without a link. Default:\n"
                  "all")
      ->transform(whole(1, kMost));
  add("--repeats", plan.repeats, "N", "Timed runs per cell, all with equal weight")
      ->transform(whole(1, kMost));
  add("--tests", plan.tests, "N",
      "How often the weights are tested, in a separate run per\n"
      "algorithm that is not timed; 1: only at the end")
      ->transform(whole(1, kMost));
  without_default("--target-accuracy", o.target_accuracy, "PERCENT",
                  "Report the time to reach this accuracy; default: the\n"
                  "highest whole per cent that all algorithms reach")
      ->transform(number("a number from 0 to 100", [](double v) { return v >= 0 && v <= 100; }));
  without_default("--optimum", o.optimum, "X",
                  "The minimum of the objective, from a long run: plots\n"
                  "how far each algorithm is above it (needs\n"
                  "-- --objective)")
      ->transform(number("a number above 0", [](double v) { return v > 0; }));
  without_default("--batch", batch, "N", "Samples per iteration; default: the paper's")
      ->transform(whole(1, kMost));
  add("--seed", plan.seed, "N", "Determines initial weights, data order and dropout")
      ->transform(whole(0, std::numeric_limits<std::uint64_t>::max()));
  without_default("--data", data, "DIR|synthetic", "As --data of the benchmark");
  without_default("--threads", threads, "N",
                  "Compute threads per worker; default: this machine's\n"
                  "cores divided by the workers")
      ->transform(whole(1, kMost));
  std::string device = to_string(plan.device), precision = to_string(plan.precision);
  add("--device", device, "NAME", "cpu or cuda")->check(one_of(names_of<DeviceKind>()));
  add("--precision", precision, "NAME", "cuda: fp32, tf32 or bf16")
      ->check(one_of(names_of<Precision>()));
  without_default("--mpiexec", mpiexec, "COMMAND",
                  "Ranks are processes started by this, for example\n"
                  "\"mpiexec.mpich -f hosts\"; default: threads");
  add("--out", out, "DIR", "Folder for the results, created if missing; required")
      ->required()
      ->option_text("DIR");
  app.add_flag("--again", o.again, "Discard the results in DIR");
  app.add_flag("--again-disturbed", plan.again_disturbed,
               "Time again the cells that other programs disturbed,\n"
               "which have a star in the tables");
  app.add_flag("--quiet", o.quiet, "Print only the table and errors");
  if (!parse_command_line(app, argc, argv)) return false;

  plan.bench = named(all_benches(), &Bench::program, bench, "--bench");
  if (batch > 0) plan.bench.batch = batch;
  plan.workers = workers;
  plan.links = links;
  for (const std::string& link : links) parse_link(link);
  plan.algorithms = rows_named(algos, compressions);
  if (std::set(compressions.begin(), compressions.end()).size() != compressions.size())
    throw UserError("--compress: a value is there twice");
  for (const Algorithm& a : plan.algorithms)
    if (const int least = strategy_named(a.algo).least_workers;
        std::ranges::any_of(workers, [=](int count) { return count < least; }))
      throw UserError("--algos {} needs at least {} --workers", a.name, least);
  plan.device = from_string<DeviceKind>(device).value();
  plan.precision = from_string<Precision>(precision).value();
  if (plan.device == DeviceKind::cpu && plan.precision != Precision::fp32)
    throw UserError("--precision {} needs --device cuda", precision);
  plan.iterations = iterations > 0 ? iterations : plan.bench.iterations;
  if (o.optimum > 0 && std::ranges::find(handed_on, "--objective") == handed_on.end())
    throw UserError("--optimum needs -- --objective, which measures the objective");
  if (plan.timed > plan.iterations)
    throw UserError("--timed {} is more than --iterations {}", plan.timed, plan.iterations);
  if (!data.empty()) plan.options = {"--data", data};
  if (threads > 0) plan.options.insert(plan.options.end(), {"--threads", std::to_string(threads)});
  check_handed_on(handed_on);
  plan.options.insert(plan.options.end(), handed_on.begin(), handed_on.end());
  std::istringstream words(mpiexec);
  for (std::string word; words >> word;) plan.mpiexec.push_back(word);
  plan.programs = fs::read_symlink("/proc/self/exe").parent_path();
  o.target_accuracy /= 100;
  o.out = out;
  return true;
}

// Keeps finished cells, so that nothing is run twice.
Results begin(const Options& o, const ResultsFolder& folder) {
  if (o.again || !folder.holds_results()) return o.plan.begin();
  try {
    return o.plan.resume(folder.read());
  } catch (const UserError& e) {
    throw UserError("--out {}: {}; choose another folder, or use --again", o.out.string(),
                    shown(e.what(), 400));
  }
}

// A line that is overwritten on a terminal, and lines that stay.
class CellProgress {
 public:
  CellProgress(bool quiet, std::size_t cells, std::size_t to_run, Console& console)
      : quiet_(quiet), cells_(cells), to_run_(to_run), console_(console) {}

  void running(std::size_t number, const Cell& cell, const std::string& what) {
    if (quiet_ || !terminal_) return;
    fmt::print(stderr, "\r\033[K[{}/{}] {}, {}: {}{}", number, cells_, cell.name, cell.setting(),
               what, left());
  }
  void finished(std::size_t number, const Cell& cell) {
    ++run_;
    if (quiet_) return;
    if (terminal_) fmt::print(stderr, "\r\033[K");
    console_.print(
        fmt::format("[{}/{}] {}, {}: {}{}{}\n", number, cells_, cell.name, cell.setting(),
                    cell.done() ? fmt::format("{} ms, {}", ms_text(cell.iteration_ms()),
                                              percent_text(cell.test_accuracy))
                                : fmt::format("failed: {}", cell.failure),
                    cell.disturbed().empty() ? "" : "; disturbed: " + cell.disturbed(), left()));
  }

 private:
  // Estimates the remaining time: every cell takes as long as the mean so far.
  std::string left() const {
    if (run_ == 0 || run_ == to_run_) return "";
    const double each = seconds_between(begin_, Clock::now()) / static_cast<double>(run_);
    return fmt::format("; about {} left", duration(each * static_cast<double>(to_run_ - run_)));
  }

  bool quiet_, terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::size_t cells_, to_run_, run_ = 0;
  Console& console_;
  Clock::time_point begin_ = Clock::now();
};

// The highest whole per cent that all have reached.
double reached_by_all(const Results& results) {
  double least = 1;
  for (const Cell& cell : results.cells)
    if (cell.done()) least = std::min(least, cell.reached());
  return std::ranges::any_of(results.cells, &Cell::done) ? std::floor(100 * least) / 100 : 0;
}

void run(Options& o) {
  if (mpi_launch())
    throw UserError("speedup starts the ranks itself: run it without mpiexec, and use --mpiexec");
  const ResultsFolder folder("speedup", o.out);
  Results results = begin(o, folder);
  WriteFailures failures("speedup");
  Console console(stdout, failures);
  const auto kept = std::ranges::count_if(results.cells, &Cell::done);
  CellProgress progress(o.quiet, results.cells.size(),
                        results.cells.size() - static_cast<std::size_t>(kept), console);
  bool warm = false;
  std::size_t number = 0, failed = 0;
  for (Cell& cell : results.cells) {
    ++number;
    if (cell.done()) continue;
    if (!std::exchange(warm, true)) warm_up(o.plan, cell);
    run_cell(o.plan, results, cell,
             [&](const std::string& what) { progress.running(number, cell, what); });
    progress.finished(number, cell);
    results.environment.date = date_now();
    folder.write_meanwhile(results, failures);
  }
  results.optimum = o.optimum;
  results.target_accuracy = o.target_accuracy > 0 ? o.target_accuracy : reached_by_all(results);
  for (const Cell& cell : results.cells) failed += !cell.done();
  console.print((o.quiet ? "" : "\n") + to_text(results) + "\n");
  if (folder.write_all(results, failures) && !o.quiet)
    console.print(folder.report().string() + "\n");
  const auto disturbed = std::ranges::count_if(
      results.cells, [](const Cell& c) { return c.done() && !c.disturbed().empty(); });
  if (disturbed > 0 && !o.quiet)
    console.print(
        fmt::format("{} of {} cells {} disturbed; run the same command with --again-disturbed to "
                    "time {} again\n",
                    disturbed, results.cells.size(), disturbed == 1 ? "was" : "were",
                    disturbed == 1 ? "it" : "them"));
  if (failed > 0)
    throw SystemError("{} of {} cells failed; run the same command to try them again{}{}", failed,
                      results.cells.size(), failures.message().empty() ? "" : "; ",
                      failures.message());
  failures.throw_if_any();
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("speedup", [&] {
    Options options;
    if (!parse(argc, argv, options)) return;
    options.plan.command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
    run(options);
  });
}
