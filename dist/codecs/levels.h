// Blocks of integers that count levels: q(v) = s/L · round(|v| · L/s) · sign(v), where s is the
// block's largest magnitude and L the number of levels. It is rounded up or down at random, so that
// the mean is v: unbiased. QSGD and TernGrad are this; so are the sums that their owners send.
//
// A block takes 4 bytes for s and `bits` bits per element, for q + L of 0 … 2L, L = 2^(bits-1) - 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

// The size of an encoded block.
std::size_t level_bytes(int bits, std::int64_t count);

// `key` determines the random numbers. Magnitudes above `clip` are cut to it; 0: none are. Returns
// the bytes written.
std::size_t encode_levels(int bits, std::span<const float> values, std::uint64_t key, float clip,
                          std::byte* to);

// Each returns the bytes read.
std::size_t add_levels(int bits, std::span<const std::byte> from, std::span<float> sum);
std::size_t decode_levels(int bits, std::span<const std::byte> from, std::span<float> values);

}  // namespace tandem
