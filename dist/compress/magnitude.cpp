#include "dist/compress/magnitude.h"

namespace tandem {

bool all_finite(std::span<const float> values) {
  return largest_magnitude_bits(values.size(), [&](std::size_t i) { return values[i]; }) <
         kInfinityBits;
}

}  // namespace tandem
