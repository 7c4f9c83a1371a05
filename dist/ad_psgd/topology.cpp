#include "dist/ad_psgd/topology.h"

#include <set>

namespace tandem {

std::vector<int> passive_neighbours(int rank, int workers, Topology topology) {
  std::set<int> found;
  const auto add = [&](int other) {
    if (!is_active(other)) found.insert(other);
  };
  const auto add_at = [&](int distance) {
    add((rank + distance) % workers);
    add((rank + workers - distance) % workers);
  };
  if (topology == Topology::complete)
    for (int other = 0; other < workers; ++other) add(other);
  else if (workers > 1)
    add_at(1);
  if (topology == Topology::exponential)
    for (int more = 2; 1 + more < workers; more *= 2) add_at(1 + more);
  return {found.begin(), found.end()};
}

}  // namespace tandem
