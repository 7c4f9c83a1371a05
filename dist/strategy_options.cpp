#include "dist/strategy_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "dist/strategies.h"

namespace tandem {
namespace {

const StrategyOption& option_named(const std::string& name) {
  const auto option = std::ranges::find(strategy_options(), name, &StrategyOption::name);
  require(option != strategy_options().end(), "no algorithm has the option {}", name);
  return *option;
}

}  // namespace

std::string StrategyOption::text(std::int64_t of) const {
  if (!choices.empty()) return choices.at(static_cast<std::size_t>(of));
  return decimal() ? fmt::format("{}", number(of)) : std::to_string(of);
}

std::int64_t StrategyOption::value_of(const std::string& text) const {
  if (decimal()) return std::llround(std::stod(text) * static_cast<double>(parts));
  if (choices.empty()) return std::stoll(text);
  return std::ranges::find(choices, text) - choices.begin();
}

std::int64_t option_value(const StrategyOptions& given, const std::string& name) {
  const StrategyOption& option = option_named(name);
  const auto found = given.find(name);
  return found == given.end() ? option.value : found->second;
}

double option_number(const StrategyOptions& given, const std::string& name) {
  return option_named(name).number(option_value(given, name));
}

}  // namespace tandem
