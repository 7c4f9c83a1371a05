// A block: the unit of ownership in a reduction, and of the scale in quantization.
#pragma once

#include <cstdint>

namespace tandem {

inline constexpr std::int64_t kBlock = 2048;  // elements of the flat gradient

}  // namespace tandem
