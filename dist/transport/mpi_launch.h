// What mpiexec says in environment variables. It is known before MPI is initialised.
#pragma once

#include <optional>

namespace tandem {

struct MpiLaunch {
  int rank = 0, size = 1;
  int local_size = 1;  // processes on this machine
  int local_rank = 0;  // this process's number among them
};

// The number in an environment variable; -1 if it is not set or not a number.
int env_number(const char* variable);

// Nothing if no launcher started this process.
std::optional<MpiLaunch> mpi_launch();

// Whether this process is the one that prints: rank 0, or the only process.
inline bool is_first_rank() { return mpi_launch().value_or(MpiLaunch{}).rank == 0; }

}  // namespace tandem
