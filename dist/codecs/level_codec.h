// What QSGD and TernGrad have in common: workers send levels of a few bits, rounded at random
// (levels.h). Owners add them, and send the sum with 8 bits per element, rounded at random as well.
// There is no residual, because the rounding averages out.
#pragma once

#include "base/random.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/levels.h"

namespace tandem {

class LevelCodec : public BlockCodec {
 public:
  LevelCodec(int bits, const CodecContext& context) : BlockCodec(context), bits_(bits) {}

  void begin(std::int64_t iteration) override {
    BlockCodec::begin(iteration);
    const Random all =
        Random(context_.seed, Purpose::rounding).split(static_cast<std::uint64_t>(iteration));
    own_ = all.split(static_cast<std::uint64_t>(context_.rank));
    sums_ = all.split(static_cast<std::uint64_t>(context_.workers));  // whoever adds
  }

  std::size_t most_bytes(std::int64_t count) const override { return level_bytes(bits_, count); }
  std::size_t most_sum_bytes(std::int64_t count) const override {
    return level_bytes(kSumBits, count);
  }

  std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) override {
    return encode_levels(bits_, values, key(own_, block), clip(values), to);
  }
  std::size_t add(std::int64_t, std::span<const std::byte> from,
                  std::span<float> sum) const override {
    return add_levels(bits_, from, sum);
  }
  std::size_t encode_sum(std::int64_t block, std::span<const float> sum, std::byte* to) override {
    return encode_levels(kSumBits, sum, key(sums_, block), 0, to);
  }
  std::size_t decode_sum(std::int64_t, std::span<const std::byte> from,
                         std::span<float> values) const override {
    return decode_levels(kSumBits, from, values);
  }

  Encoding encoding() override {
    return {.form = Encoding::Form::levels,
            .key = own_.key(),
            .sum_key = sums_.key(),
            .bits = bits_,
            .sum_bits = kSumBits,
            .clip = clip_deviations()};
  }

 protected:
  // Magnitudes above it are cut; 0: none are.
  virtual float clip(std::span<const float> values) const {
    (void)values;
    return 0;
  }
  // The same in standard deviations of the block.
  virtual float clip_deviations() const { return 0; }

 private:
  static constexpr int kSumBits = 8;

  static std::uint64_t key(const Random& random, std::int64_t block) {
    return random.split(static_cast<std::uint64_t>(block)).key();
  }

  int bits_;
  Random own_, sums_;
};

}  // namespace tandem
