#include "dist/compress/compressor.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "dist/block.h"
#include "dist/compress/magnitude.h"

namespace tandem {

void Compressor::add_packed(std::span<const std::byte> received, std::span<const std::byte> own,
                            std::int64_t count, std::span<std::byte> sum) const {
  std::array<float, kBlock> memory;  // stays in the L1 cache
  const auto values = std::span(memory).first(static_cast<std::size_t>(count));
  decompress(own, values);
  add(received, values, sum);
}

HugePages Compressor::memory(std::size_t bytes) const { return HugePages(bytes); }

void Compressor::copy(std::span<const std::byte> from, std::span<std::byte> to) const {
  std::ranges::copy(from, to.begin());
}

bool Compressor::finite(std::span<const float> values) const { return all_finite(values); }

void Compressor::add_values(std::span<const float> other, std::span<float> own) const {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] += other[i];
}

void Compressor::average(std::span<const float> other, std::span<float> own) const {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = 0.5F * other[i] + 0.5F * own[i];
}

const std::vector<std::string>& compressor_names() {
  static const std::vector<std::string> kNames = {"none", "trunc16", "quant8", "terngrad-ring"};
  return kNames;
}

std::unique_ptr<Compressor> make_compressor(const std::string& name) {
  if (name == "none") return make_none();
  if (name == "trunc16") return make_trunc16();
  if (name == "quant8") return make_quant8();
  if (name == "terngrad-ring") return make_terngrad_ring();
  throw UserError("there is no compressor named {}", name);
}

}  // namespace tandem
