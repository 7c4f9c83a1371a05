// Rules as validators for CLI11, which puts the option's name before the complaint. Use them as
// transforms: they replace the text by its plain decimal form, because CLI11 would read 010 as
// eight.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/rules.h"

namespace tandem {

inline CLI::Validator validator(const Rule& rule) {
  return CLI::Validator([rule](std::string& text) { return rule.complaint(text); }, "");
}

inline CLI::Validator number(const std::string& must_be, const std::function<bool(double)>& holds) {
  return validator(rules::number(must_be, holds));
}
inline CLI::Validator whole(std::uint64_t low, std::uint64_t high) {
  return validator(rules::whole(low, high));
}
inline CLI::Validator one_of(const std::vector<std::string>& names) {
  return validator(rules::one_of(names));
}

}  // namespace tandem
