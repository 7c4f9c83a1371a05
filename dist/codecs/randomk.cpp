// Random-k with memory (Stich et al., 2018). In each iteration, k = RATIO · 2048 elements of every
// block x = gradient + residual are chosen at random and sent; the others stay in the residual. All
// workers choose the same ones, so their places need not be sent, and values are added like plain
// ones.
//
//   q(x)ᵢ = xᵢ if i is chosen, else 0;   residual ← x - q(x).
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_table.h"

namespace tandem {
namespace {

class RandomK : public BlockCodec {
 public:
  RandomK(double ratio, const CodecContext& context)
      : BlockCodec(context), ratio_(ratio), residual_(context, count()) {}

  std::size_t most_bytes(std::int64_t count) const override {
    return static_cast<std::size_t>(k_of(count)) * sizeof(float);
  }
  std::size_t most_sum_bytes(std::int64_t count) const override { return most_bytes(count); }

  std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) override {
    const std::span<float> x = residual_.add_to(block, values);
    std::byte* at = to;
    for_each_chosen(block, x.size(), [&](std::size_t i) {
      std::memcpy(at, &x[i], sizeof(float));
      at += sizeof(float);
      x[i] = 0;
    });
    return static_cast<std::size_t>(at - to);
  }
  std::size_t add(std::int64_t block, std::span<const std::byte> from,
                  std::span<float> sum) const override {
    return read(block, from, sum.size(), [&](std::size_t i, float v) { sum[i] += v; });
  }
  std::size_t encode_sum(std::int64_t block, std::span<const float> sum, std::byte* to) override {
    std::byte* at = to;
    for_each_chosen(block, sum.size(), [&](std::size_t i) {
      std::memcpy(at, &sum[i], sizeof(float));
      at += sizeof(float);
    });
    return static_cast<std::size_t>(at - to);
  }
  std::size_t decode_sum(std::int64_t block, std::span<const std::byte> from,
                         std::span<float> values) const override {
    std::ranges::fill(values, 0.0F);
    return read(block, from, values.size(), [&](std::size_t i, float v) { values[i] = v; });
  }

  Encoding encoding() override {
    return {.form = Encoding::Form::chosen,
            .residual = residual_.values(),
            .key = stream().key(),
            .k = static_cast<int>(k_of(kBlock)),
            .k_of_short = static_cast<int>(k_of(count() % kBlock))};
  }

  void visit(State& state) override { residual_.visit(state, "residual"); }

 private:
  std::int64_t k_of(std::int64_t count) const { return part_of(ratio_, count); }

  Random stream() const {
    return Random(context_.seed, Purpose::rounding).split(static_cast<std::uint64_t>(iteration_));
  }

  // Steps of an odd length visit all places below a power of two, each once.
  template <class F>
  void for_each_chosen(std::int64_t block, std::size_t count, F&& f) const {
    Random random = stream().split(static_cast<std::uint64_t>(block));
    const std::size_t all = std::bit_ceil(count);
    const auto step = static_cast<std::size_t>(random.below(all)) | 1;
    auto place = static_cast<std::size_t>(random.below(all));
    for (std::int64_t left = k_of(static_cast<std::int64_t>(count)); left > 0;
         place = (place + step) & (all - 1))
      if (place < count) {
        f(place);
        --left;
      }
  }

  template <class F>
  std::size_t read(std::int64_t block, std::span<const std::byte> from, std::size_t count,
                   F&& f) const {
    const std::size_t bytes = most_bytes(static_cast<std::int64_t>(count));
    require(from.size() >= bytes, "an encoded block has {} bytes instead of {}", from.size(),
            bytes);
    const std::byte* at = from.data();
    for_each_chosen(block, count, [&](std::size_t i) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      at += sizeof value;
      f(i, value);
    });
    return bytes;
  }

  double ratio_;
  Residual residual_;
};

}  // namespace

std::unique_ptr<Codec> make_randomk(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<RandomK>(choice.value, context);
}

}  // namespace tandem
