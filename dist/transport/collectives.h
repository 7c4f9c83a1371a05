// Collective operations for occasional use: totals, results, barriers. They are simple rather than
// fast: nearly everything goes through rank 0. Ranks 0 … ranks-1 take part, and all of them must
// make the call. (A rank that stands for all gets the result at once.)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dist/transport/transport.h"

namespace tandem {

// Replaces the values by their sums over all ranks, added in the order of the ranks.
void sum_over_ranks(Transport& transport, int ranks, std::span<double> values);

// The same with the largest values.
void max_over_ranks(Transport& transport, int ranks, std::span<double> values);

void barrier(Transport& transport, int ranks);

// A barrier that all ranks leave at the same time, for measurements. (Rank 0 leaves the usual one a
// latency before the others.) Ranks on several machines have no common clock, and one may leave a
// latency before the others.
void start_together(Transport& transport, int ranks);

// A barrier for the end of a job, on all ranks. The stall timeout does not run while another rank
// works: a rank may still be writing files, or waiting for a reader of its output.
void wait_for_all(Transport& transport);

using Bytes = std::vector<std::byte>;
// On rank 0, returns the bytes of every rank, by rank; on others, nothing.
std::vector<Bytes> gather(Transport& transport, int ranks, const Bytes& own);
// Copies rank 0's bytes to all ranks.
void broadcast(Transport& transport, int ranks, Bytes& bytes);

}  // namespace tandem
