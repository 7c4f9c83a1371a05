// Codes of a few bits, packed without gaps. Element i of Q = n·w/8 shares its byte with elements
// i + Q, i + 2Q, …, not with its neighbours: so a loop over bytes works on many at once. A width of
// 3, 5, 6 or 7 bits is cut into planes of w = 4, 2 and 1 bits.
//
//   w = 2   byte j = code[j] | code[j + Q] << 2 | code[j + 2Q] << 4 | code[j + 3Q] << 6
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dist/block.h"

namespace tandem {

// One code per byte.
using Codes = std::array<std::uint8_t, kBlock>;

inline constexpr std::size_t kGroup = 8;  // elements that take `bits` bytes

inline std::size_t groups_of(std::size_t count) { return (count + kGroup - 1) / kGroup; }

// Calls f<w, shift>(place, Q) for each plane: `shift` bits of a code lie below it, and its
// bytes begin at `place`.
template <int bits, int shift = 0, class F>
void for_each_plane(std::size_t groups, F&& f) {
  if constexpr (shift < bits) {
    constexpr int kWidth = static_cast<int>(std::bit_floor(static_cast<unsigned>(bits - shift)));
    f.template operator()<kWidth, shift>(groups * shift, groups * kWidth);
    for_each_plane<bits, shift + kWidth>(groups, f);
  }
}

// Codes after the last one must be 0, up to a whole group.
template <int bits>
void pack(const Codes& codes, std::size_t groups, std::byte* to) {
  for_each_plane<bits>(groups, [&]<int w, int shift>(std::size_t place, std::size_t q) {
    constexpr unsigned kMask = (1U << w) - 1;
    const std::uint8_t* const from = codes.data();
    auto* const __restrict bytes = reinterpret_cast<std::uint8_t*>(to + place);
    for (std::size_t j = 0; j < q; ++j) {
      unsigned byte = 0;
      for (int k = 0; k < 8 / w; ++k) byte |= (from[j + k * q] >> shift & kMask) << (w * k);
      bytes[j] = static_cast<std::uint8_t>(byte);
    }
  });
}

template <int bits>
void unpack(const std::byte* from, std::size_t groups, Codes& codes) {
  for_each_plane<bits>(groups, [&]<int w, int shift>(std::size_t place, std::size_t q) {
    constexpr unsigned kMask = (1U << w) - 1;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from + place);
    for (int k = 0; k < 8 / w; ++k) {
      std::uint8_t* const to = codes.data() + k * q;
      for (std::size_t j = 0; j < q; ++j) {
        const unsigned part = (bytes[j] >> (w * k) & kMask) << shift;
        to[j] = static_cast<std::uint8_t>(shift == 0 ? part : to[j] | part);
      }
    }
  });
}

}  // namespace tandem
