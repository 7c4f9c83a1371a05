// Ranks that are processes started by mpiexec (MPICH's or Open MPI's). One thread per process makes
// all MPI calls: the one that opens the transport. A build without MPI uses mpi_stub.cpp instead of
// mpi_transport.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "dist/transport/transport.h"

namespace tandem {

// Initialises MPI. The calling thread must make all further MPI calls. Throws UserError if the
// launcher belongs to another MPI than the one that Tandem was built with.
std::unique_ptr<Transport> open_mpi();

// Whether MPI can be initialised and has not been yet.
bool can_start_mpi();

// Finalises MPI. Call wait_for_all() first. Afterwards the transport must not be used.
void close_mpi();

// Ends the whole job at once, with this exit status.
[[noreturn]] void abort_mpi(int status);

// MPI's own all-reduce over all ranks, for comparison with ours. It waits by spinning, or by
// testing and yielding as ours does.
enum class MpiWait { spins, yields };
void mpi_allreduce(std::span<float> values, MpiWait wait);

// The library's name and version, such as "MPICH 4.0.2".
std::string mpi_version();

}  // namespace tandem
