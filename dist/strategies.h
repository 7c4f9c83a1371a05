// The table of all algorithms. To add one, write a class and add an entry to the table in
// strategies.cpp. The command line and its checks, the number of ranks, predictions, the rows of
// `speedup` and the conformance test (tests/dist/conformance_test.cpp) follow from the entry. No
// other room refers to an algorithm by name. docs/writing-a-strategy.md walks through an example.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/strategy.h"
#include "dist/strategy_options.h"
#include "dist/timing/model.h"

namespace tandem {

// What an algorithm guarantees about the weights.
enum class Family {
  alone,         // one worker, no communication
  synchronous,   // the same bits as d-sync, after every iteration and on every worker, unless an
                 // option changes the order of additions
  delayed,       // updates are late, but the same on all workers
  averaging,     // each worker has its own weights; all take the mean now and then
  asynchronous,  // workers do not wait for each other; the result depends on who is faster
};

// An algorithm's rows in the tables of `speedup`, one per compressor.
struct SpeedupRows {
  std::string label;  // as in the papers, such as "Pipe-SGD"; empty: no rows
  std::vector<std::string> compressors = {"none", "trunc16", "quant8"};
  bool by_default = true;  // false: only if --algos names them
};

struct StrategyInfo {
  std::string name;  // as --algo takes it
  std::string help;  // a few words for --help
  Family family;
  std::unique_ptr<Strategy> (*make)(const StrategyContext& context);
  // What a server runs; null for algorithms without servers. Algorithms with servers have the
  // option --servers. If they have the option --via, too, it says whether servers take part.
  std::unique_ptr<Server> (*make_server)(const StrategyContext& context) = nullptr;
  // Predicts the seconds per iteration. Null, or nothing with some options: there is no model.
  std::optional<double> (*predict)(const ModelInput& input) = nullptr;
  // The same from the measurements of a trial (trial_strategy()). Null: there is no formula; if the
  // algorithm measures, it predicts for itself (CommunicationPlan::predicted_s).
  double (*forecast)(const MergePlan& measured, const StrategyOptions& options) = nullptr;
  std::vector<StrategyOption> options = {};
  SpeedupRows rows = {};
  // The last iteration that measures for a plan or a prediction; 0: none measures.
  std::int64_t measures_until = 0;
  // Whether it sends weights, not gradients. --compress is refused then: rounding of gradients
  // averages out, but rounding of weights stays.
  bool sends_weights = false;
  int least_workers = 1;
  // Says why gradients cannot be encoded by a codec (codecs/codec.h); empty if they can with these
  // options. Null: they always can.
  std::string (*no_codecs)(const StrategyOptions& given) = nullptr;
  // Whether it makes a plan from what it measures, which --plan keeps.
  bool keeps_plan = false;

  // Throws UserError if the algorithm cannot run with so few workers, or with this --compress.
  void require_possible(int workers, const std::string& compress,
                        const StrategyOptions& given) const;

  // Throws UserError if an option that was given is larger than the net's gradient.
  void require_fitting(const StrategyOptions& given, const ParameterSet& parameters) const;

  // Null if the algorithm does not have it.
  const StrategyOption* option(const std::string& named) const;
  bool has_option(const std::string& named) const { return option(named) != nullptr; }
  bool distributed() const { return family != Family::alone; }
  bool asynchronous() const { return family == Family::asynchronous; }
  // Whether every iteration sums the gradients of all workers.
  bool sums_gradients() const { return family == Family::synchronous || family == Family::delayed; }
  // Whether all workers compute with the same weights. If not, what their forward passes measure,
  // such as the statistics of batch norms, does not belong to the weights that are tested.
  bool same_weights() const {
    return family != Family::averaging && family != Family::asynchronous;
  }
  // How many ranks are servers.
  int servers(const StrategyOptions& given) const;
  // How many iterations of d-sync a run begins with.
  std::int64_t warmup(const StrategyOptions& given, std::int64_t iterations_per_epoch) const;
};

// In the order of the results tables, roughly from slow to fast.
const std::vector<StrategyInfo>& all_strategies();
std::vector<std::string> strategy_names();
// For an unknown name, strategy_named() throws UserError and find_strategy() returns null.
const StrategyInfo& strategy_named(const std::string& name);
const StrategyInfo* find_strategy(const std::string& name);
// The algorithm of a run without --algo.
const StrategyInfo& default_strategy(int workers);
// The algorithm whose plan() has what forecasts need, after measures_until iterations.
const StrategyInfo& trial_strategy();

// The algorithms that a text such as auto:d-sync,merge allows. auto alone allows d-sync, merge
// (whose sums end no later than those of wfbp, buckets and mg-wfbp) and p3. Empty if the text is
// not of this form. Throws UserError for unknown names.
std::vector<std::string> algorithms_to_try(const std::string& text);

// The options of all algorithms, each once, with all choices.
const std::vector<StrategyOption>& strategy_options();
// The names of the algorithms that have this option.
std::vector<std::string> strategies_with(const std::string& option);

// Throws UserError for an unknown name, and for options that do not fit the net.
std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context);

// The predicted seconds per iteration; nothing for an algorithm without a model, and if ranks share
// NICs.
std::optional<double> predicted_iteration(const ModelInput& input);

}  // namespace tandem
