// The part of the report that explains its tables, figures and timelines.
#pragma once

#include <string>

#include "speedup/results.h"

namespace tandem {

std::string reading_html(const Results& results);

}  // namespace tandem
