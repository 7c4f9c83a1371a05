// Options that only some algorithms have. An algorithm lists its options in its entry in
// strategies.cpp and reads their values by name. All values are integers. Some have names, and some
// count parts of a decimal number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem {

struct StrategyOption {
  std::string name;        // "--pipe-k"
  std::string value_name;  // "K", for --help
  std::string help;        // --help puts the algorithms' names in front
  std::int64_t value = 0;  // the default
  std::int64_t least = 0, most = 0;
  // Whether the value is a number of d-sync iterations or epochs that the run begins with.
  enum class Warmup { no, iterations, epochs };
  Warmup warmup = Warmup::no;
  // If the value is a part of the gradient: the elements per unit. A given value must not exceed
  // the gradient; the default may.
  double elements = 0;
  // The names of the values 0, 1, …; empty: the value is a number.
  std::vector<std::string> choices = {};
  // How many parts 1 has, for decimal numbers: with 1'000'000, the text 0.01 is the value 10'000.
  std::int64_t parts = 1;

  bool decimal() const { return parts > 1; }
  double number(std::int64_t of) const {
    return static_cast<double>(of) / static_cast<double>(parts);
  }
  std::string text(std::int64_t of) const;               // its name or number
  std::int64_t value_of(const std::string& text) const;  // the opposite
};

// Values by name. A missing option has its default.
using StrategyOptions = std::map<std::string, std::int64_t>;

// The value of an option that at least one algorithm has.
std::int64_t option_value(const StrategyOptions& given, const std::string& name);
// The number that the value of a decimal option means.
double option_number(const StrategyOptions& given, const std::string& name);

}  // namespace tandem
