// Checks that all ranks have the same options, data or weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/transport/transport.h"

namespace tandem {

// Something that must be the same on all ranks, such as {"--lr", "0.1"}. Neither string contains a
// zero byte.
struct Trait {
  std::string name, value;
  bool operator==(const Trait&) const = default;
};

struct Difference {
  std::vector<int> ranks;  // ranks that differ from rank 0 in this trait; at least one
  // The trait on the first of these ranks and on rank 0; empty if that rank's list is shorter.
  Trait trait, of_rank_0;
};

// "rank 2", "ranks 1 and 2", "ranks 1, 2 and 3".
std::string name_of_ranks(const std::vector<int>& ranks);

// Compares the lists of ranks 0 … ranks-1 and returns the first trait that differs. All of them
// must call it, and all get the same result.
std::optional<Difference> first_difference(Transport& transport, int ranks,
                                           const std::vector<Trait>& own);

}  // namespace tandem
