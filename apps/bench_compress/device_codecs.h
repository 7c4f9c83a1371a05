// Speed of codecs on a GPU.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// Prints a table for a gradient of this many elements.
void report_codecs_on_gpu(const std::vector<std::string>& codecs, std::int64_t count);

}  // namespace tandem
