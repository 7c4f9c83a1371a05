// Ranks that are processes started by mpiexec (MPICH's or Open MPI's). One thread per process
// makes all calls of MPI: the one that opens the transport. In a build without MPI, mpi_stub.cpp
// takes the place of mpi_transport.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "dist/transport/transport.h"

namespace tandem {

// Starts MPI, with this thread as the one that communicates. UserError if the launcher belongs to
// another MPI than the one that Tandem was built with.
std::unique_ptr<Transport> open_mpi();

// Whether MPI has not been started yet, and can be.
bool can_start_mpi();

// Ends MPI. All ranks must have come to their end (wait_for_all). The transport may not be used any
// more.
void close_mpi();

// Ends the whole job at once, with this exit status.
[[noreturn]] void abort_mpi(int status);

// MPI's own all-reduce over all ranks, to measure ours beside it. Waiting spins, or tests and
// yields as ours does.
enum class MpiWait { spins, yields };
void mpi_allreduce(std::span<float> values, MpiWait wait);

// Of the library, for people: "MPICH 4.0.2".
std::string mpi_version();

}  // namespace tandem
