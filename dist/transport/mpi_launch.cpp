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
    const char *rank, *size, *local_size;
  };
  constexpr Names kLaunchers[] = {
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}};
  for (const Names& names : kLaunchers) {
    const int rank = env_number(names.rank), size = env_number(names.size);
    if (rank < 0 || size < 1) continue;
    const int local = env_number(names.local_size);
    return MpiLaunch{rank, size, local > 0 ? local : size};
  }
  return std::nullopt;
}

}  // namespace tandem
