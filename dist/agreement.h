// Whether ranks have alike what they must have alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/transport/transport.h"

namespace tandem {

// Something that must be the same on all ranks, such as {"--lr", "0.1"}. Neither holds a zero byte.
struct Trait {
  std::string name, value;
  bool operator==(const Trait&) const = default;
};

struct Difference {
  std::vector<int> ranks;  // that differ from rank 0, where any does first; one at least
  // What the first of them and rank 0 have there; empty where a list is at its end.
  Trait trait, of_rank_0;
};

// "rank 2", "ranks 1 and 2", "ranks 1, 2 and 3".
std::string name_of_ranks(const std::vector<int>& ranks);

// Compares the lists of ranks 0 … ranks-1, which call together. All of them learn the result.
std::optional<Difference> first_difference(Transport& transport, int ranks,
                                           const std::vector<Trait>& own);

}  // namespace tandem
