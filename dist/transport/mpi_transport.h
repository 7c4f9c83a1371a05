// Ranks that are processes started by mpiexec (MPICH's or Open MPI's). One thread per process makes
// all MPI calls: the one that opens the transport. A build without MPI uses mpi_stub.cpp instead of
// mpi_transport.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "dist/transport/transport.h"

namespace tandem {

// Initialises MPI; this thread makes all further calls. Throws UserError if the launcher belongs to
// another MPI than the one that Tandem was built with.
std::unique_ptr<Transport> open_mpi();

// Whether MPI can be initialised and has not been yet.
bool can_start_mpi();

// Finalises MPI. All ranks must have reached the end (wait_for_all). The transport may no longer be
// used.
void close_mpi();

// Ends the whole job at once, with this exit status.
[[noreturn]] void abort_mpi(int status);

// MPI's own all-reduce over all ranks, to compare ours with. It waits by spinning, or by testing
// and yielding as ours does.
enum class MpiWait { spins, yields };
void mpi_allreduce(std::span<float> values, MpiWait wait);

// Of the library, for people: "MPICH 4.0.2".
std::string mpi_version();

}  // namespace tandem
