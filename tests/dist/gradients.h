#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "base/monitor.h"
#include "base/random.h"

namespace tandem::test {

// A gradient that every rank has of its own. A shorter one is the beginning of a longer one, so the
// numbers are drawn only once.
inline std::vector<float> gradient(std::int64_t count, int rank) {
  struct Drawn {
    Random random;
    std::vector<float> values;
  };
  static Monitor<std::map<int, Drawn>> by_rank;
  return by_rank.change([&](std::map<int, Drawn>& all) {
    Drawn& drawn = all.try_emplace(rank, Drawn{Random(static_cast<std::uint64_t>(rank) + 1), {}})
                       .first->second;
    while (std::ssize(drawn.values) < count)
      drawn.values.push_back(static_cast<float>(drawn.random.uniform(-1, 1)));
    return std::vector<float>(drawn.values.begin(), drawn.values.begin() + count);
  });
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace tandem::test
