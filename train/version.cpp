// The only file that is recompiled when the commit changes: the Makefile defines TANDEM_VERSION and
// TANDEM_COMMIT for it.
#include "train/version.h"

#include <fmt/format.h>

#include <cctype>

#include "dist/transport/mpi_transport.h"
#include "tensor/cuda/cuda_backend.h"

namespace tandem {

std::string tandem_version() { return TANDEM_VERSION; }

std::string tandem_commit() { return TANDEM_COMMIT; }

std::string compiler_version() {
  const std::string compiler = __VERSION__;  // g++ gives its number alone
  return std::isdigit(compiler[0]) ? "g++ " + compiler : compiler;
}

std::string version_line() {
  const std::string commit = tandem_commit(), cuda = cuda_versions();
  return fmt::format("tandem {} ({}, {}, {}, {})", tandem_version(),
                     commit.empty() ? "unknown commit" : "commit " + commit, compiler_version(),
                     mpi_version(), cuda.empty() ? "no CUDA" : cuda);
}

}  // namespace tandem
