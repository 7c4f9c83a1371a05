#include "dist/compress/none.h"

#include <cstring>

namespace tandem {

std::size_t NoCompression::bytes(std::int64_t count) const {
  return static_cast<std::size_t>(count) * sizeof(float);
}

void NoCompression::compress(std::span<const float> values, std::span<std::byte> packed) const {
  if (!values.empty()) std::memcpy(packed.data(), values.data(), values.size_bytes());
}

void NoCompression::decompress(std::span<const std::byte> packed, std::span<float> values) const {
  if (!values.empty()) std::memcpy(values.data(), packed.data(), values.size_bytes());
}

void NoCompression::add(std::span<const std::byte> received, std::span<const float> values,
                        std::span<std::byte> packed) const {
  const auto* in = reinterpret_cast<const float*>(received.data());
  auto* out = reinterpret_cast<float*>(packed.data());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = in[i] + values[i];
}

}  // namespace tandem
