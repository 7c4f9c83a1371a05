// Every algorithm in one place. A new one is a file with its class and an entry in the table of
// strategies.cpp. The command line and its checks, the number of ranks, predictions, the rows of
// `speedup` and the conformance test (tests/dist/conformance_test.cpp) follow from the entry; no
// other room knows an algorithm by its name. docs/writing-a-strategy.md builds one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/strategy.h"
#include "dist/strategy_options.h"
#include "dist/timing/model.h"

namespace tandem {

// What may be expected of the weights.
enum class Family {
  alone,        // one worker, which talks to nobody
  synchronous,  // the bits of d-sync, after every iteration and on every worker
  delayed,      // updates are late, but all workers make the same ones
  averaging,    // workers have weights of their own, and take the mean now and then
};

// The rows of an algorithm in the tables of `speedup`, one for each compressor.
struct SpeedupRows {
  std::string label;  // as the papers write it: "Pipe-SGD"; empty: no rows
  std::vector<std::string> compressors = {"none", "trunc16", "quant8"};
  bool by_default = true;  // else only where --algos asks for them
};

struct StrategyInfo {
  std::string name;  // as --algo takes it
  std::string help;  // a few words for --help
  Family family;
  std::unique_ptr<Strategy> (*make)(const StrategyContext& context);
  // What a server runs; null for algorithms without servers. The others have the option --servers.
  std::unique_ptr<Server> (*make_server)(const StrategyContext& context) = nullptr;
  // Seconds that an iteration takes by the timing model; null where there is no model.
  double (*predict)(const ModelInput& input) = nullptr;
  std::vector<StrategyOption> options = {};
  SpeedupRows rows = {};

  bool has_option(const std::string& option) const;
  bool distributed() const { return family != Family::alone; }
  // Ranks besides the workers.
  int servers(const StrategyOptions& given) const;
  // Iterations of d-sync with which a run begins.
  std::int64_t warmup(const StrategyOptions& given, std::int64_t iterations_per_epoch) const;
};

// From the slowest to the fastest, as tables of results show them.
const std::vector<StrategyInfo>& all_strategies();
std::vector<std::string> strategy_names();
// Throws UserError for a name that none has, or returns null.
const StrategyInfo& strategy_named(const std::string& name);
const StrategyInfo* find_strategy(const std::string& name);
// For those who do not say which.
const StrategyInfo& default_strategy(int workers);

// The options of all algorithms, each once.
const std::vector<StrategyOption>& strategy_options();
// The names of the algorithms that have the option; empty if it belongs to none.
std::vector<std::string> strategies_with(const std::string& option);

std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context);

// What the model says an iteration takes; nothing for an algorithm that has none.
std::optional<double> predicted_iteration(const ModelInput& input);

}  // namespace tandem
