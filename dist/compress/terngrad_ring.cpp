// TernGrad (Wen et al., 2017) in the ring: each hop makes the partial sum ternary again. With a
// block's largest magnitude s, an element becomes
//
//   t(v) = s · sign(v) with probability |v|/s, else 0,   so that E[t(v)] = v.
//
// A block takes 4 bytes for s and 2 bits per element (codecs/levels.h).
//
// Compressors have no memory, so the random numbers come from the values themselves: a hash of the
// block's bits determines them. A value of 0 or ±s is not rounded, whatever they are: so
// compressing a compressed block again does not change it. The codec `terngrad` cuts large values,
// which would change such a block; this does not.
#include <algorithm>
#include <array>
#include <bit>

#include "dist/block.h"
#include "dist/codecs/levels.h"
#include "dist/compress/compressor.h"

namespace tandem {
namespace {

constexpr int kBits = 2;
constexpr std::size_t kElements = kBlock;

std::uint64_t hash_of_block(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;  // independent, so that the compiler can vectorise
  std::array<std::uint32_t, kLanes> lanes{};
  const auto mix = [](std::uint32_t& lane, float value) {
    lane = std::rotl(lane ^ std::bit_cast<std::uint32_t>(value), 13) * 0x9e3779b1U;
  };
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) mix(lanes[k], values[i + k]);
  for (std::size_t k = 0; i < values.size(); ++i, ++k) mix(lanes[k], values[i]);
  std::uint64_t hash = values.size();
  for (const std::uint32_t lane : lanes) {
    hash = (hash ^ lane) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

void pack_block(std::span<const float> values, std::byte* packed) {
  encode_levels(kBits, values, hash_of_block(values), 0, packed);
}

class TernGradRing : public Compressor {
 public:
  const char* name() const override { return "terngrad-ring"; }
  Packing packing() const override { return Packing::ternary; }

  std::size_t bytes(std::int64_t count) const override {
    return packed_bytes(Packing::ternary, count, kBlock);
  }

  void compress(std::span<const float> values, std::span<std::byte> packed) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      pack_block(values.subspan(i, count), packed.data() + byte);
    });
  }

  void decompress(std::span<const std::byte> packed, std::span<float> values) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      decode_levels(kBits, packed.subspan(byte), values.subspan(i, count));
    });
  }

  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      std::array<float, kElements> memory;  // stays in the L1 cache
      const auto sum = std::span(memory).first(count);
      std::ranges::copy(values.subspan(i, count), sum.begin());
      add_levels(kBits, received.subspan(byte), sum);
      pack_block(sum, packed.data() + byte);
    });
  }

 private:
  // Calls f(first element, elements, first byte) for every block of a run.
  template <class F>
  void for_each_block(std::size_t count, F&& f) const {
    const std::size_t a_block = bytes(kBlock);
    for (std::size_t i = 0, byte = 0; i < count; i += kElements, byte += a_block)
      f(i, std::min(kElements, count - i), byte);
  }
};

}  // namespace

std::unique_ptr<Compressor> make_terngrad_ring() { return std::make_unique<TernGradRing>(); }

}  // namespace tandem
