// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace tandem {

class CannotStart : public SystemError {
 public:
  explicit CannotStart(const std::string& program) : SystemError("{} cannot be started", program) {}
};

// What the program has printed. It is searched for on the PATH, runs in the folder, and ends when
// this process does. Throws CannotStart, or SystemError if it does not end with status 0; the text
// is what it said last on stderr, without its own name in front.
std::string run_program(const std::vector<std::string>& command, const std::string& folder = ".");

}  // namespace tandem
