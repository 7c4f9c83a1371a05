// Finds entries of the table in strategies.cpp, and answers questions about them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "dist/codecs/codec_table.h"
#include "dist/param_server/node_sum.h"
#include "dist/param_server/shards.h"
#include "dist/schedule/p3.h"
#include "dist/strategies.h"

namespace tandem {

const StrategyOption* StrategyInfo::option(const std::string& named) const {
  const auto found = std::ranges::find(options, named, &StrategyOption::name);
  return found == options.end() ? nullptr : &*found;
}

void StrategyInfo::require_possible(int workers, const std::string& compress,
                                    const StrategyOptions& given) const {
  if (workers < least_workers)
    throw UserError("--algo {} needs at least {} workers, not {}", name, least_workers, workers);
  if (sends_weights && compress != "none")
    throw UserError("--compress {} is for gradients; --algo {} sends weights", compress, name);
  if (has_option("--aggregate") && nodes_first(given) &&
      push_time(given) == PushTime::during_backward)
    throw UserError("--aggregate nodes-first does not work with --push during-backward");
  const auto codec = parse_compression(compress);
  if (!codec) return;
  if (!distributed()) throw UserError("--compress {} has no effect with --algo {}", compress, name);
  const auto refuse = [&](const std::string& reason) {
    throw UserError("--compress {} does not work with --algo {}: {}", compress, name, reason);
  };
  if (const std::string why = no_codecs ? no_codecs(given) : ""; !why.empty()) refuse(why);
  if (codec->second > 0 && (measures_until > 0 || make_server))
    refuse(fmt::format("{} needs the norm of the whole gradient, which is sent in parts",
                       codec->info->second_name));
  if (make_server && !has_option("--via") && !codec->info->by_block)
    refuse(fmt::format("{} needs the sums of all workers, and its servers do not wait for them",
                       codec->info->name));
}

void StrategyInfo::require_fitting(const StrategyOptions& given,
                                   const ParameterSet& parameters) const {
  const std::int64_t count = parameters.gradients().count();
  for (const StrategyOption& own : options) {
    if (own.elements == 0 || !given.contains(own.name)) continue;
    const std::int64_t value = option_value(given, own.name);
    if (static_cast<double>(value) * own.elements > static_cast<double>(count))
      throw UserError("{} {} is larger than the whole gradient of {} elements ({:.3g} MB)",
                      own.name, value, count, 1e-6 * static_cast<double>(count) * sizeof(float));
  }
}

int StrategyInfo::servers(const StrategyOptions& given) const {
  const bool none = !make_server || (has_option("--via") && via(given) != Via::servers);
  return none ? 0 : static_cast<int>(option_value(given, "--servers"));
}

std::int64_t StrategyInfo::warmup(const StrategyOptions& given,
                                  std::int64_t iterations_per_epoch) const {
  std::int64_t iterations = 0;
  for (const StrategyOption& option : options) {
    const std::int64_t value = option_value(given, option.name);
    if (option.warmup == StrategyOption::Warmup::iterations) iterations += value;
    if (option.warmup == StrategyOption::Warmup::epochs) iterations += value * iterations_per_epoch;
  }
  return iterations;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyInfo& info : all_strategies()) names.push_back(info.name);
  return names;
}

const StrategyInfo* find_strategy(const std::string& name) {
  const auto found = std::ranges::find(all_strategies(), name, &StrategyInfo::name);
  return found == all_strategies().end() ? nullptr : &*found;
}

const StrategyInfo& strategy_named(const std::string& name) {
  const StrategyInfo* found = find_strategy(name);
  if (!found) throw UserError("--algo {} is not known", name);
  return *found;
}

const StrategyInfo& default_strategy(int workers) {
  return strategy_named(workers > 1 ? "d-sync" : "single");
}

const StrategyInfo& trial_strategy() { return strategy_named("wfbp"); }

std::vector<std::string> algorithms_to_try(const std::string& text) {
  const auto choices = auto_list(text);
  if (!choices) return {};
  if (choices->empty()) return {"d-sync", "merge", "p3"};
  for (const std::string& one : *choices) strategy_named(one);
  return *choices;
}

const std::vector<StrategyOption>& strategy_options() {
  static const std::vector<StrategyOption> kOptions = [] {
    std::vector<StrategyOption> all;
    for (const StrategyInfo& info : all_strategies())
      for (const StrategyOption& option : info.options)
        if (const auto found = std::ranges::find(all, option.name, &StrategyOption::name);
            found == all.end())
          all.push_back(option);
        else if (option.choices.size() > found->choices.size())
          *found = option;
    return all;
  }();
  return kOptions;
}

std::vector<std::string> strategies_with(const std::string& option) {
  std::vector<std::string> names;
  for (const StrategyInfo& info : all_strategies())
    if (info.has_option(option)) names.push_back(info.name);
  return names;
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context) {
  const StrategyInfo& info = strategy_named(name);
  info.require_fitting(context.options, context.parameters);
  return info.make(context);
}

std::optional<double> predicted_iteration(const ModelInput& input) {
  const StrategyInfo* info = find_strategy(input.algo);
  if (!info || !info->predict || input.ranks_per_node > 1) return {};
  return info->predict(input);
}

}  // namespace tandem
