// Who averages with whom in AD-PSGD. Even ranks are active, odd ranks are passive. An active rank
// chooses one of its neighbours, which all are passive. So no two ranks can wait for each other.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// The values of --topology.
enum class Topology : std::int64_t {
  ring,         // distance 1
  exponential,  // distances 1, 1+2, 1+4, 1+8 …
  complete,     // all passive ranks
};

inline bool is_active(int rank) { return rank % 2 == 0; }

// The passive neighbours of an active rank, in ascending order. Distances count in both directions
// and around the end. In an odd world, an odd distance around the end leads to another active rank;
// such neighbours are left out. With two or more workers, each active rank has at least one.
std::vector<int> passive_neighbours(int rank, int workers, Topology topology);

}  // namespace tandem
