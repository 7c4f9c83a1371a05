// A hash of bytes, the same everywhere, to tell whether two of them differ by accident: FNV-1a.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325ULL;

// Of what was hashed before (`so_far`) followed by the bytes.
inline std::uint64_t hash_of(std::span<const std::byte> bytes,
                             std::uint64_t so_far = kHashOfNothing) {
  for (const std::byte byte : bytes)
    so_far = (so_far ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return so_far;
}

}  // namespace tandem
