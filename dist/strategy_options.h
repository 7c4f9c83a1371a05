// Options that only some algorithms have. An algorithm lists them in its entry of strategies.cpp
// and reads their values by name. They are whole numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tandem {

struct StrategyOption {
  std::string name;        // "--pipe-k"
  std::string value_name;  // "K", for --help
  std::string help;        // without the algorithms' names, which --help puts in front
  std::int64_t value = 0;  // the default
  std::int64_t least = 0, most = 0;
  // Whether it says with how many iterations of d-sync a run begins, and what it counts.
  enum class Warmup { no, iterations, epochs };
  Warmup warmup = Warmup::no;
};

// By name. Those that are missing have their defaults.
using StrategyOptions = std::map<std::string, std::int64_t>;

// The value of an option that at least one algorithm has.
std::int64_t option_value(const StrategyOptions& given, const std::string& name);

}  // namespace tandem
