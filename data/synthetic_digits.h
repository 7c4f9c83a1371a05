// Digits drawn by program: always there, learnable, not trivial. Every image is a stroke drawing
// of a digit, shifted, turned, slanted, scaled, with a pen of varying width, and with noise.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace tandem {

// `count` images [28, 28, 1] in ten classes. The same seed draws the same images everywhere;
// different seeds draw different ones.
std::shared_ptr<const InMemoryDataset> synthetic_digits(std::int64_t count, std::uint64_t seed);

}  // namespace tandem
