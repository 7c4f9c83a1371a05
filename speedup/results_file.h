// Results as a file, results.json.
#pragma once

#include <string>

#include "speedup/results.h"

namespace tandem {

// The text with invalid UTF-8 replaced, because JSON cannot hold it.
std::string valid_text(const std::string& text);

std::string to_json(const Results& results);
// Throws UserError, which names the file, if it is not a results.json of ours.
Results read_results(const std::string& path);

}  // namespace tandem
