#include "speedup/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "dist/strategies.h"
#include "speedup/earlier_results.h"
#include "speedup/environment.h"
#include "speedup/results_file.h"

namespace tandem {

const std::vector<Bench>& all_benches() {
  static const std::vector<Bench> all = {
      {"mnist_mlp", 100, 600}, {"cifar_convex", 100, 300}, {"cifar_cnn", 100, 200},
      {"alexnet", 256, 20},    {"resnet", 256, 20},        {"vgg", 256, 20},
      {"googlenet", 256, 20},  {"inception", 256, 20},
  };
  return all;
}

namespace {

bool possible(const StrategyInfo& info, const std::string& compress) {
  // The paper has PS-Sync only without compression.
  if (info.rows.compressors.size() == 1) return info.rows.compressors.front() == compress;
  try {
    info.require_possible(info.least_workers, compress, {});
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void require_known(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      throw UserError("--algos {}: choose from {}", name, fmt::join(known, ", "));
}

}  // namespace

std::vector<Algorithm> rows_named(const std::vector<std::string>& algos,
                                  const std::vector<std::string>& compressions) {
  const auto chosen = [&](const std::string& name, bool by_default) {
    return algos.empty() ? by_default : std::ranges::find(algos, name) != algos.end();
  };
  std::vector<Algorithm> rows;
  std::vector<std::string> known;
  if (compressions.empty()) {
    for (const Algorithm& a : all_algorithms()) {
      known.push_back(a.name);
      if (chosen(a.name, a.by_default)) rows.push_back(a);
    }
    require_known(algos, known);
    return rows;
  }
  for (const StrategyInfo& info : all_strategies()) {
    const std::string& label = info.rows.label;
    if (label.empty()) continue;
    known.push_back(label);
    if (!chosen(label, info.rows.by_default)) continue;
    for (const std::string& compress : compressions)
      if (!algos.empty() || possible(info, compress))
        rows.push_back({row_name(label, compress), info.name, compress, false});
  }
  require_known(algos, known);
  if (rows.empty())
    throw UserError("no algorithm can be compared with --compress {}",
                    fmt::join(compressions, ","));
  return rows;
}

Results Comparison::begin() const {
  Results r{.bench = bench.program,
            .net = bench.program,  // until a run says more
            .device = device,
            .precision = precision,
            .options = valid_text(fmt::format("{}", fmt::join(options, " "))),
            .batch = bench.batch,
            .iterations = iterations,
            .timed = timed > 0 ? timed : iterations,
            .repeats = repeats,
            .tests = tests,
            .seed = seed,
            .environment = this_machine(device == DeviceKind::cuda)};
  r.environment.command = valid_text(command_line);
  r.environment.transport = mpiexec.empty() ? "threads" : "MPI";
  for (const int count : workers)
    for (const std::string& link : links)
      for (const Algorithm& a : algorithms)
        r.cells.push_back({.name = a.name,
                           .algo = a.algo,
                           .compress = a.compress,
                           .workers = count,
                           .link = link});
  return r;
}

namespace {

// Keeps the test results, which do not depend on timing.
Cell without_times(const Cell& cell) {
  return {.name = cell.name,
          .algo = cell.algo,
          .compress = cell.compress,
          .workers = cell.workers,
          .link = cell.link,
          .test_accuracy = cell.test_accuracy,
          .train_loss = cell.train_loss,
          .weights_hash = cell.weights_hash,
          .warmup = cell.warmup,
          .curve = cell.curve};
}

}  // namespace

Results Comparison::resume(const Results& earlier) const {
  Results now = begin();
  require_same("--bench", earlier.bench, now.bench);
  require_same("--device", std::string_view(to_string(earlier.device)), to_string(now.device));
  require_same("--precision", std::string_view(to_string(earlier.precision)),
               to_string(now.precision));
  require_same("--batch", earlier.batch, now.batch);
  require_same("--iterations", earlier.iterations, now.iterations);
  require_same("--timed", earlier.timed, now.timed);
  require_same("--repeats", earlier.repeats, now.repeats);
  require_same("--tests", earlier.tests, now.tests);
  require_same("--seed", earlier.seed, now.seed);
  require_same("options", fmt::format("'{}'", earlier.options), fmt::format("'{}'", now.options));
  require_same("ranks over", earlier.environment.transport, now.environment.transport);
  now.data = earlier.data;
  now.net = earlier.net;
  now.parameters = earlier.parameters;
  for (Cell& cell : now.cells)
    if (const Cell* finished = earlier.beside(cell, cell.name)) {
      const bool runs_again = again_disturbed && !finished->disturbed().empty();
      cell = runs_again ? without_times(*finished) : *finished;
    }
  keep_others(earlier, now);
  // Finished results can be drawn on any machine. Unfinished ones must be continued on the same
  // one.
  const Environment here = std::exchange(now.environment, earlier.environment);
  if (!std::ranges::all_of(now.cells, &Cell::done)) {
    require_same("Tandem", earlier.environment.tandem, here.tandem);
    require_same("the processor", earlier.environment.processor, here.processor);
    require_same("cores:", earlier.environment.cores, here.cores);
    require_same("the GPU", earlier.environment.gpu, here.gpu);
    require_same("versions", earlier.environment.versions, here.versions);
    now.environment.command = here.command;
  }
  return now;
}

namespace {

std::string_view name_of(std::string_view option) { return option.substr(0, option.find('=')); }

// The options without those that the algorithm does not have.
std::vector<std::string> known_to(const std::string& algo,
                                  const std::vector<std::string>& options) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::vector<std::string> only_for = strategies_with(std::string(name_of(options[i])));
    if (only_for.empty() || std::ranges::find(only_for, algo) != only_for.end())
      known.push_back(options[i]);
    else if (name_of(options[i]) == options[i])
      ++i;  // skips the value, which is the next word
  }
  return known;
}

// How many servers a run has with these words. (--servers cannot be among them.)
int servers_of(const std::string& algo, const std::vector<std::string>& options) {
  const StrategyInfo& info = strategy_named(algo);
  StrategyOptions given;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const StrategyOption* via = info.option("--via");
    if (!via || name_of(options[i]) != via->name) continue;
    const bool joined = name_of(options[i]) != options[i];  // --via=servers
    if (joined || i + 1 < options.size())
      given[via->name] =
          via->value_of(joined ? options[i].substr(via->name.size() + 1) : options[i + 1]);
  }
  return info.servers(given);
}

}  // namespace

void check_handed_on(const std::vector<std::string>& options) {
  constexpr std::string_view kAlsoOurs[] = {"--workers", "--link",      "--iterations", "--batch",
                                            "--seed",    "--data",      "--threads",    "--device",
                                            "--quiet",   "--precision", "--help"};
  constexpr std::string_view kSet[] = {"--algo",    "--compress", "--servers",     "--epochs",
                                       "--metrics", "--summary",  "--trace",       "--test-every",
                                       "--save",    "--timeline", "--timeline-ms", "--plan"};
  for (const std::string& option : options) {
    if (std::ranges::find(kAlsoOurs, name_of(option)) != std::end(kAlsoOurs))
      throw UserError("give {} before the --: the comparison passes it to the program itself",
                      name_of(option));
    if (std::ranges::find(kSet, name_of(option)) != std::end(kSet))
      throw UserError("{} cannot be given after the --: the comparison sets it itself",
                      name_of(option));
  }
}

bool Comparison::deterministic() const {
  return device == DeviceKind::cpu ||
         std::ranges::find(options, "--deterministic") != options.end();
}

std::vector<std::string> without_warmup(const Cell& cell) {
  std::vector<std::string> words;
  for (const StrategyOption& option : strategy_named(cell.algo).options)
    if (option.warmup != StrategyOption::Warmup::no) words.insert(words.end(), {option.name, "0"});
  return words;
}

std::string link_of_tests(const Cell& cell) {
  return strategy_named(cell.algo).asynchronous() ? cell.link : "none";
}

std::vector<std::string> Comparison::command(const Cell& cell) const {
  std::vector<std::string> words = mpiexec;
  const auto known = known_to(cell.algo, options);
  const int ranks = cell.workers + servers_of(cell.algo, known);
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (!mpiexec.empty()) add({"-n", std::to_string(ranks)});
  add({programs + "/" + bench.program, "--algo", cell.algo, "--compress", cell.compress, "--link",
       cell.link, "--batch", std::to_string(bench.batch), "--seed", std::to_string(seed),
       "--device", to_string(device), "--quiet", "--workers", std::to_string(cell.workers)});
  if (device == DeviceKind::cuda) add({"--precision", to_string(precision)});
  for (const std::string& word : without_warmup(cell)) words.push_back(word);
  words.insert(words.end(), known.begin(), known.end());
  return words;
}

}  // namespace tandem
