// The word that was probably meant, for messages about unknown names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// The fewest letters to insert, delete or replace, and pairs of neighbours to swap. A letter is
// changed only once.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  // The distances of a prefix of a to each prefix of b; above: of one letter less; before: of two.
  std::vector<std::size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, above[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
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
