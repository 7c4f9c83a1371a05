// Blocks of which only some elements are sent: their number, their places in the block (16 bits
// each) and their values. A block in which so many are not zero that this would take more bytes
// than all values is sent whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dist/block.h"

namespace tandem {

// Places in a block, in ascending order.
struct Chosen {
  std::array<std::uint16_t, kBlock> places;
  std::size_t count = 0;

  void add(std::size_t place) { places[count++] = static_cast<std::uint16_t>(place); }
  std::span<const std::uint16_t> all() const { return std::span(places).first(count); }
};

// The k elements of largest magnitude; of equal ones, the first.
void choose_largest(std::span<const float> values, std::size_t k, Chosen& chosen);

// Whether a block of `count` elements takes fewer bytes if all its values are sent.
bool better_whole(std::size_t chosen, std::size_t count);

// Each returns the bytes that it has written or read.
std::size_t encode_whole(std::span<const float> values, std::byte* to);
std::size_t encode_chosen(std::span<const float> values, const Chosen& chosen, std::byte* to);
// All elements that are not zero.
std::size_t encode_sparse(std::span<const float> values, std::byte* to);
std::size_t add_sparse(std::span<const std::byte> from, std::span<float> sum);
std::size_t decode_sparse(std::span<const std::byte> from, std::span<float> values);

// The largest size of a block of `count` elements, of which at most `chosen` are sent.
std::size_t most_sparse_bytes(std::int64_t count, std::int64_t chosen);

}  // namespace tandem
