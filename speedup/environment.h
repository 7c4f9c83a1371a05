#pragma once

#include "speedup/results.h"

namespace tandem {

// The machine that this runs on. `gpu`: whether to describe its GPU.
Environment this_machine(bool gpu);

// The time now, for people.
std::string date_now();

}  // namespace tandem
