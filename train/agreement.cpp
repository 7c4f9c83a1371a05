#include "train/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/hash.h"
#include "dist/strategies.h"
#include "train/option_table.h"

namespace tandem {
namespace {

std::vector<Trait> traits_of(const DataSplit& data) {
  std::vector<Trait> traits;
  const auto add = [&](const std::string& images, const Dataset& set) {
    traits.push_back({"the number of " + images, fmt::format("{}", set.size())});
    traits.push_back({"the shape of " + images, fmt::format("{}", set.image_shape())});
    traits.push_back({"the classes of " + images, fmt::format("{}", set.classes())});
    traits.push_back({"the fingerprint of " + images, fmt::format("{:016x}", set.fingerprint())});
  };
  add("training images", *data.train);
  add("test images", *data.test);
  const Normalisation& n = data.normalisation;
  traits.push_back(
      {"the normalisation", fmt::format("{:016x} {:016x}", hash_of(n.mean), hash_of(n.deviation))});
  return traits;
}

std::vector<Trait> traits_of(const ParameterSet& parameters, bool with_statistics) {
  std::vector<Trait> traits;
  const bool here = parameters.device().is_cpu();
  for (const Parameter* p : parameters.all())
    if (with_statistics || p->role != Role::statistic)
      traits.push_back(
          {p->name, fmt::format("{:016x}", here ? hash_of(p->value.span<float>())
                                                : hash_of(p->value.to_host<float>()))});
  return traits;
}

// Rank 0 returns what differs. If something does, the other ranks throw SaidElsewhere.
std::optional<Difference> compare(Communication& communication, int ranks,
                                  const std::vector<Trait>& traits) {
  Transport& transport = communication.transport();
  auto found = communication.call([&] { return first_difference(transport, ranks, traits); });
  if (found && transport.rank() != 0) throw SaidElsewhere();
  return found;
}

std::vector<Trait> traits_of(const std::string& app, const TrainOptions& options, bool may_change) {
  std::vector<Trait> traits = {{"the program", app}};
  for (const OptionRow& row : option_table()) {
    if (row.ranks == Ranks::agree && (may_change || !row.may_change))
      traits.push_back({row.name, row.text(options)});
    if (row.name != "--algo") continue;
    for (const StrategyOption& option : strategy_options())
      traits.push_back({option.name, option.text(option_value(options.algo_options, option.name))});
  }
  for (const auto& [key, own] : options.own)
    if (!own.ranks_differ) traits.push_back({option_of(key), text_of(own)});
  return traits;
}

}  // namespace

std::vector<Trait> traits_of(const std::string& app, const TrainOptions& options) {
  return traits_of(app, options, true);
}

std::vector<Trait> traits_to_resume(const std::string& app, const TrainOptions& options,
                                    const DataSplit& data) {
  std::vector<Trait> traits = traits_of(app, options, false);
  std::ranges::move(traits_of(data), std::back_inserter(traits));
  return traits;
}

void require_same_data(Communication& communication, const DataSplit& data) {
  const auto found = compare(communication, communication.transport().size(), traits_of(data));
  if (found)
    throw UserError(
        "rank {} has different data from rank 0: {} is {}, not {}; all ranks need the same data",
        found->ranks.front(), found->trait.name, found->trait.value, found->of_rank_0.value);
}

void require_same_start(Communication& communication, const ParameterSet& parameters) {
  if (communication.transport().size() == 1) return;
  const auto found =
      compare(communication, communication.transport().size(), traits_of(parameters, true));
  if (found)
    throw UserError(
        "the weights of {} differ from those of rank 0 before training, first in {}; all ranks "
        "need the same initial weights (--load)",
        name_of_ranks(found->ranks), found->of_rank_0.name);
}

void require_same_weights(Communication& communication, int workers, const ParameterSet& parameters,
                          bool with_statistics, std::int64_t iteration) {
  const auto found = compare(communication, workers, traits_of(parameters, with_statistics));
  if (found)
    throw SystemError(
        "the weights of {} differ from those of rank 0 after iteration {}, first in {}; a "
        "machine or a library computes wrongly",
        name_of_ranks(found->ranks), iteration, found->of_rank_0.name);
}

}  // namespace tandem
