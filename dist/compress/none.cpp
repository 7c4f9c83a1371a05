// No compression: the f32 values themselves, 4 bytes per element.
#include <cstring>

#include "dist/compress/compressor.h"

namespace tandem {
namespace {

// `sum` may be `x` or `y`.
void add_floats(const float* x, const float* y, std::size_t count, float* sum) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
}

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
    add_floats(reinterpret_cast<const float*>(received.data()), values.data(), values.size(),
               reinterpret_cast<float*>(packed.data()));
  }

  void add_packed(std::span<const std::byte> received, std::span<const std::byte> own,
                  std::int64_t count, std::span<std::byte> sum) const override {
    add_floats(reinterpret_cast<const float*>(received.data()),
               reinterpret_cast<const float*>(own.data()), static_cast<std::size_t>(count),
               reinterpret_cast<float*>(sum.data()));
  }
};

}  // namespace

std::unique_ptr<Compressor> make_none() { return std::make_unique<NoCompression>(); }

}  // namespace tandem
