// A hash of bytes (FNV-1a), the same on every machine. It detects accidental differences, not
// attacks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tandem {

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325ULL;

// Continues the hash `so_far` with these bytes.
inline std::uint64_t hash_of(std::span<const std::byte> bytes,
                             std::uint64_t so_far = kHashOfNothing) {
  for (const std::byte byte : bytes)
    so_far = (so_far ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return so_far;
}

// A faster hash for many bytes, at memory speed. It differs from the other one.
inline std::uint64_t fast_hash_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kLanes = 4, kWord = sizeof(std::uint64_t);  // independent, so they overlap
  std::uint64_t lanes[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = kHashOfNothing + lane;
  std::size_t i = 0;
  for (; i + kLanes * kWord <= bytes.size(); i += kLanes * kWord)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + i + lane * kWord, kWord);
      // The rotation makes high bits affect all others too.
      lanes[lane] = std::rotl((lanes[lane] ^ word) * 0x9e3779b97f4a7c15ULL, 29);
    }
  return hash_of(bytes.subspan(i), hash_of(std::as_bytes(std::span(lanes))));
}

// The same for numbers.
inline std::uint64_t hash_of(std::span<const float> values) {
  return fast_hash_of(std::as_bytes(values));
}

}  // namespace tandem
