// Words of a text, such as the value of an option.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The words between these characters. One of them may be empty.
inline std::vector<std::string> words_of(std::string_view text, char between) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == between)
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

// A value that leaves a choice to the program is "auto", or "auto:" and what it may choose, with
// commas. Returns what it may choose: nothing for "auto" alone. Null: it is another value.
inline std::optional<std::vector<std::string>> auto_list(std::string_view text) {
  constexpr std::string_view kAuto = "auto";
  if (text == kAuto) return std::vector<std::string>();
  if (!text.starts_with(kAuto) || text[kAuto.size()] != ':') return std::nullopt;
  return words_of(text.substr(kAuto.size() + 1), ',');
}

}  // namespace tandem
