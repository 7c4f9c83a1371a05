// Blocks of which only some elements are sent: their number, their places in the block (16 bits
// each) and their values. A block in which so many are not zero that this would take more bytes
// than all values is sent whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dist/block.h"

namespace tandem {

// Places in a block, in ascending order.
struct Chosen {
  std::array<std::uint16_t, kBlock> places;
  std::size_t count = 0;

  void add(std::size_t place) { add_if(true, place); }
  void add_if(bool wanted, std::size_t place) {  // without a branch
    places[count] = static_cast<std::uint16_t>(place);
    count += wanted ? 1 : 0;
  }
  // Adds the places from `first` up to `end` for which wanted(place).
  template <class F>
  void add_where(std::size_t first, std::size_t end, F&& wanted);
  std::span<const std::uint16_t> all() const { return std::span(places).first(count); }
};

// The k > 0 elements of largest magnitude; of equal ones, the first.
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

// The size of the first block of these bytes. Throws if it cannot be decoded.
std::size_t sparse_bytes(std::span<const std::byte> from, std::int64_t count);

// The largest size of a block of `count` elements, of which at most `chosen` are sent.
std::size_t most_sparse_bytes(std::int64_t count, std::int64_t chosen);

// Most places are not wanted. So this looks for groups of eight that have some, and then into them,
// both without branches, which would be hard to predict.
template <class F>
void Chosen::add_where(std::size_t first, std::size_t end, F&& wanted) {
  constexpr std::size_t kGroup = 8;
  std::array<std::uint8_t, kBlock> flags;
  for (std::size_t i = first; i < end; ++i) flags[i] = wanted(i) ? 1 : 0;
  std::array<std::uint16_t, kBlock / kGroup> groups;
  std::size_t found = 0, i = first;
  for (; i + kGroup <= end; i += kGroup) {
    std::uint64_t group = 0;
    std::memcpy(&group, flags.data() + i, kGroup);
    groups[found] = static_cast<std::uint16_t>(i);
    found += group != 0 ? 1 : 0;
  }
  for (std::size_t g = 0; g < found; ++g)
    for (std::size_t k = 0; k < kGroup; ++k) add_if(flags[groups[g] + k] != 0, groups[g] + k);
  for (; i < end; ++i) add_if(flags[i] != 0, i);
}

}  // namespace tandem
