// Which Tandem this is.
#pragma once

#include <string>

namespace tandem {

std::string tandem_version();  // "0.2.0"

// The commit that it was built from: "04819b3", or "04819b3-dirty" where files differed from it.
// Empty where git did not know, as in an unpacked archive.
std::string tandem_commit();

std::string compiler_version();  // "g++ 12.2.0"

// All of it, with MPI and CUDA, in a line for people: what --version prints.
std::string version_line();

}  // namespace tandem
