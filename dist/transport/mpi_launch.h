// What mpiexec has put into this process's environment; known before MPI is initialised.
#pragma once

#include <optional>

namespace tandem {

struct MpiLaunch {
  int rank = 0, size = 1;
  int local_size = 1;  // processes on this machine
  int local_rank = 0;  // among them
};

// A number from the launcher's environment variable; -1 if it is not set.
int env_number(const char* variable);

// Nothing without a launcher.
std::optional<MpiLaunch> mpi_launch();

// Whether this process reports for all: the first rank, or the only process.
inline bool is_first_rank() { return mpi_launch().value_or(MpiLaunch{}).rank == 0; }

}  // namespace tandem
