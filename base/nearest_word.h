// The word that was probably meant, for messages about unknown names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Levenshtein distance: the fewest letters to insert, delete or replace.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances from a prefix of a to each prefix of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// The known word with the smallest edit distance, at most a third of the unknown word's length. An
// abbreviation counts as distance 1. Empty if none is close.
inline std::string nearest_word(const std::string& unknown, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, unknown.size() / 3) + 1;
  for (const std::string& word : known) {
    std::size_t distance = edit_distance(unknown, word);
    if (unknown.size() > 1 && word.starts_with(unknown))
      distance = std::min<std::size_t>(distance, 1);
    if (distance < least) {
      least = distance;
      nearest = word;
    }
  }
  return nearest;
}

}  // namespace tandem
