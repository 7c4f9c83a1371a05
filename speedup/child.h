// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace tandem {

class CannotStart : public SystemError {
 public:
  explicit CannotStart(const std::string& program) : SystemError("cannot start {}", program) {}
};

// Returns what the program has printed. The program is searched for on the PATH, runs in `folder`,
// and is killed when this process ends. Throws CannotStart, or SystemError if the exit status is
// not 0; its text is the program's last message on stderr, without the program's name.
std::string run_program(const std::vector<std::string>& command, const std::string& folder = ".");

}  // namespace tandem
