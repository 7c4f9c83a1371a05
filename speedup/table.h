// The results as tables.
#pragma once

#include <string>

#include "speedup/results.h"

namespace tandem {

std::string to_text(const Results& results);  // for a terminal
std::string to_markdown(const Results& results);
std::string to_csv(const Results& results);  // one line per cell

}  // namespace tandem
