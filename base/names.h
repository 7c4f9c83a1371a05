// Enumerations whose values have names: options and files name them, the program uses the values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Specialised for each: NamesOf<E>::names is an array of the names, in the order of the values,
// which count from 0.
template <class E>
struct NamesOf;

template <class E>
concept Named = requires {
  NamesOf<E>::names;
};

// "?" for what is none of the values.
template <Named E>
constexpr const char* to_string(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < std::size(NamesOf<E>::names) ? NamesOf<E>::names[index] : "?";
}

// Nothing if no value has the name.
template <Named E>
std::optional<E> from_string(std::string_view name) {
  const auto found = std::ranges::find(NamesOf<E>::names, name);
  if (found == std::end(NamesOf<E>::names)) return std::nullopt;
  return static_cast<E>(found - std::begin(NamesOf<E>::names));
}

template <Named E>
std::vector<std::string> names_of() {
  return {std::begin(NamesOf<E>::names), std::end(NamesOf<E>::names)};
}

}  // namespace tandem
