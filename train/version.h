// The version of Tandem and of what it was built with.
#pragma once

#include <string>

namespace tandem {

std::string tandem_version();  // "0.2.0"

// The commit it was built from: "04819b3", or "04819b3-dirty" if files were modified. Empty if git
// did not know, as in an unpacked archive.
std::string tandem_commit();

std::string compiler_version();  // "g++ 12.2.0"

// All versions, with MPI and CUDA, on one line: what --version prints.
std::string version_line();

}  // namespace tandem
