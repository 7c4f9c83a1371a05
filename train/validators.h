// What the value of an option must be, said in a sentence about the value itself; CLI11 puts the
// option's name before it.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// To be used as a transform: the text is replaced by its plain decimal form, because CLI11 would
// read 010 as eight.
template <class T>
CLI::Validator number(const std::string& rule, const std::function<bool(T)>& holds) {
  return CLI::Validator(
      [rule, holds](std::string& text) {
        T value{};
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || rest != end || !holds(value))
          return fmt::format("must be {}, not {}", rule, text.empty() ? "empty" : text);
        text = fmt::format("{}", value);
        return std::string();
      },
      "");
}

inline CLI::Validator whole(std::uint64_t low, std::uint64_t high) {
  return number<std::uint64_t>(fmt::format("a whole number from {} to {}", low, high),
                               [=](std::uint64_t v) { return v >= low && v <= high; });
}
inline CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](std::string& text) {
        std::string all;
        for (const std::string& name : names) {
          if (text == name) return std::string();
          all += (all.empty() ? "" : " or ") + name;
        }
        return fmt::format("must be {}, not {}", all, text);
      },
      "");
}

}  // namespace tandem
