#include "base/hash.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace tandem;

TEST_CASE("hash: every bit of every number counts, and so do their number and order") {
  for (const std::size_t count : {1, 7, 8, 9, 100}) {
    CAPTURE(count);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) / 7;
    std::set<std::uint64_t> seen = {hash_of(values)};
    std::size_t tried = 1;
    const auto is_new = [&] {
      seen.insert(hash_of(values));
      CHECK(seen.size() == ++tried);
    };
    const auto flip = [](float& value, int bit) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1U << bit));
    };
    for (float& value : values)
      for (const int bit : {0, 12, 31}) {
        flip(value, bit);
        is_new();
        flip(value, bit);
      }
    CHECK(hash_of(values) == hash_of(std::vector<float>(values)));
    if (count > 8) {  // two signs that share a lane must not make up for each other
      flip(values[0], 31);
      flip(values[8], 31);
      is_new();
      flip(values[0], 31);
      flip(values[8], 31);
      std::swap(values[1], values[2]);
      is_new();
    }
    values.push_back(0);
    is_new();
  }
}
