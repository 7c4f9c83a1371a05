// Replaces mpi_transport.cpp in a build without MPI. Using MPI is then a UserError.
#include "dist/transport/mpi_transport.h"

namespace tandem {
namespace {

[[noreturn]] void refuse() {
  throw UserError("this build has no MPI (make MPI=1); without mpiexec, --workers uses threads");
}

}  // namespace

std::unique_ptr<Transport> open_mpi() { refuse(); }
bool can_start_mpi() { return false; }
void close_mpi() { refuse(); }
void abort_mpi(int) { refuse(); }
void mpi_allreduce(std::span<float>, MpiWait) { refuse(); }
std::string mpi_version() { return "no MPI"; }

}  // namespace tandem
