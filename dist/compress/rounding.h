#pragma once

#include <span>

#include "dist/compress/compressor.h"

namespace tandem {

// Replaces every value by what it is after compression and decompression. A rank's contribution to
// a sum is what the others would see of it, whoever does the adding. `flat` begins at a block.
void round_to_compressed(const Compressor& compressor, std::span<float> flat);

}  // namespace tandem
