// What programs ask of all ranks now and then: totals, results, a common start. Simple rather than
// fast: everything goes through rank 0. Ranks 0 … ranks-1 take part and call together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dist/transport/transport.h"

namespace tandem {

// Replaces the values by their sums over all ranks, added in the order of the ranks.
void sum_over_ranks(Transport& transport, int ranks, std::span<double> values);

void barrier(Transport& transport, int ranks);

// At the end of a job, on all ranks: waits until all are there, as long as those that are not are
// seen to work. The first may still be writing files, or waiting for somebody to read what it
// prints.
void wait_for_all(Transport& transport);

using Bytes = std::vector<std::byte>;
// On rank 0 what every rank has given, by rank; empty elsewhere.
std::vector<Bytes> gather(Transport& transport, int ranks, const Bytes& own);
// Everywhere what rank 0 has.
void broadcast(Transport& transport, int ranks, Bytes& bytes);

}  // namespace tandem
