// The report on a comparison: one file of HTML that holds all it needs.
#pragma once

#include <filesystem>
#include <string>

#include "speedup/results.h"

namespace tandem {

// With the figures that draw_figures() has left in the folder; it says so where one is missing.
std::string report_html(const Results& results, const std::filesystem::path& figures_folder);

}  // namespace tandem
