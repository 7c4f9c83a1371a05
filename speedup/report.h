// The report on a comparison: one self-contained HTML file.
#pragma once

#include <filesystem>
#include <string>

#include "speedup/results.h"

namespace tandem {

// Includes the figures that draw_figures() left in the folder. Says so if one is missing.
std::string report_html(const Results& results, const std::filesystem::path& figures_folder);

}  // namespace tandem
