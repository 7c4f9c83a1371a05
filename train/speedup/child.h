// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// What the program has printed. It is searched for on the PATH, and ends when this process does.
// Throws SystemError if it cannot be started or does not end with status 0; the text is what the
// program said last on stderr, without its own name in front.
std::string run_program(const std::vector<std::string>& command);

}  // namespace tandem
