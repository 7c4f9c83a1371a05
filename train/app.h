// Runs a program's `body` and returns its exit status: 0 for success, 2 for a usage error, 3 if
// training diverged, 1 for a failure of the environment or of Tandem itself. Every failure prints
// one sentence on stderr. A closed pipe does not kill the program: writing to it fails like writing
// to a full disk.
#pragma once

#include <functional>

namespace tandem {

int run_app(const char* name, const std::function<void()>& body);

}  // namespace tandem
