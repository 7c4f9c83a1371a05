// Generated digits: always available, learnable, not trivial. Every image shows the strokes of a
// digit, shifted, rotated, slanted and scaled, with varying line width and noise.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace tandem {

// `count` images [28, 28, 1] in ten classes. The same seed draws the same images everywhere;
// different seeds draw different ones.
std::shared_ptr<const InMemoryDataset> synthetic_digits(std::int64_t count, std::uint64_t seed);

}  // namespace tandem
