// What the value of an option must be. A rule works on the value as text, so that the same rule
// serves the command line and options that a program has set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

struct Rule {
  std::string must_be;  // "a whole number from 1 to 64"
  // Whether the text obeys the rule. Replaces a number by its plain decimal form: 010 is ten.
  std::function<bool(std::string& text)> holds;
  // Says what is wrong with a text, instead of what it must be; may be null.
  std::function<std::string(const std::string& text)> what_is_wrong = {};

  // What is wrong, or "must be …, not …"; empty if the text obeys the rule.
  std::string complaint(std::string& text) const;
};

namespace rules {

Rule number(const std::string& must_be, const std::function<bool(double)>& holds);
Rule whole(std::uint64_t low, std::uint64_t high);
Rule one_of(const std::vector<std::string>& names);

}  // namespace rules

}  // namespace tandem
