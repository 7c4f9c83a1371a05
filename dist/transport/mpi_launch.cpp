#include "dist/transport/mpi_launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tandem {

int env_number(const char* variable) {
  const char* text = std::getenv(variable);
  int value = -1;
  if (text) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

std::optional<MpiLaunch> mpi_launch() {
  struct Names {
    const char *rank, *size, *local_size, *local_rank;
  };
  constexpr Names kLaunchers[] = {{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
                                  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}};
  for (const Names& names : kLaunchers) {
    const int rank = env_number(names.rank), size = env_number(names.size);
    if (rank < 0 || size < 1) continue;
    const int local_size = env_number(names.local_size), local_rank = env_number(names.local_rank);
    return MpiLaunch{rank, size, local_size > 0 ? local_size : size,
                     local_rank >= 0 ? local_rank : rank};
  }
  return std::nullopt;
}

}  // namespace tandem
