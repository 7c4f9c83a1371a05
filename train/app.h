// How every program ends: 0 when all went well, 2 after a mistake of the user's, 3 when training
// diverged, 1 after a failure of the environment or of Tandem itself; always with one sentence on
// stderr. Writing to a closed pipe does not end a program: it is an error like a full disk.
#pragma once

#include <functional>

namespace tandem {

int run_app(const char* name, const std::function<void()>& body);

}  // namespace tandem
