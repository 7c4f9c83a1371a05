// No compression: the f32 values themselves, 4 bytes per element.
#include <cstring>

#include "dist/compress/compressor.h"

namespace tandem {
namespace {

class NoCompression : public Compressor {
 public:
  const char* name() const override { return "none"; }
  Packing packing() const override { return Packing::none; }

  std::size_t bytes(std::int64_t count) const override {
    return static_cast<std::size_t>(count) * sizeof(float);
  }

  void compress(std::span<const float> values, std::span<std::byte> packed) const override {
    if (!values.empty()) std::memcpy(packed.data(), values.data(), values.size_bytes());
  }

  void decompress(std::span<const std::byte> packed, std::span<float> values) const override {
    if (!values.empty()) std::memcpy(values.data(), packed.data(), values.size_bytes());
  }

  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override {
    const auto* in = reinterpret_cast<const float*>(received.data());
    auto* out = reinterpret_cast<float*>(packed.data());
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = in[i] + values[i];
  }
};

}  // namespace

std::unique_ptr<Compressor> make_none() { return std::make_unique<NoCompression>(); }

}  // namespace tandem
