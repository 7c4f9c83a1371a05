#include "train/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace tandem {
namespace {

template <class T>
Rule number_rule(const std::string& must_be, const std::function<bool(T)>& holds) {
  return {must_be, [holds](std::string& text) {
            T value{};
            const char* end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc() || rest != end || !holds(value)) return false;
            text = fmt::format("{}", value);
            return true;
          }};
}

}  // namespace

std::string Rule::complaint(std::string& text) const {
  if (holds(text)) return "";
  if (what_is_wrong) return what_is_wrong(text);
  return fmt::format("must be {}, not {}", must_be, text.empty() ? "empty" : text);
}

namespace rules {

Rule number(const std::string& must_be, const std::function<bool(double)>& holds) {
  return number_rule<double>(must_be, holds);
}

Rule whole(std::uint64_t low, std::uint64_t high) {
  return number_rule<std::uint64_t>(fmt::format("a whole number from {} to {}", low, high),
                                    [=](std::uint64_t v) { return v >= low && v <= high; });
}

Rule one_of(const std::vector<std::string>& names) {
  return {fmt::format("{}", fmt::join(names, " or ")),
          [names](std::string& text) { return std::ranges::find(names, text) != names.end(); }};
}

}  // namespace rules

}  // namespace tandem
