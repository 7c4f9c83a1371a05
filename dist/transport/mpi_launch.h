// What mpiexec has told this process by its environment, before MPI is started.
#pragma once

#include <optional>

namespace tandem {

struct MpiLaunch {
  int rank = 0, size = 1;
  int local_size = 1;  // processes on this machine
  int local_rank = 0;  // among them
};

// A number that the launcher has put into the environment; -1 if it has not.
int env_number(const char* variable);

// Nothing without a launcher.
std::optional<MpiLaunch> mpi_launch();

// Whether this process speaks for all of them: the first one, or the only one.
inline bool is_first_rank() { return mpi_launch().value_or(MpiLaunch{}).rank == 0; }

}  // namespace tandem
