// 1-bit SGD (Seide et al., 2014). A block x = gradient + residual becomes a bit per element and two
// numbers, the mean of its elements ≥ 0 and the mean of those below:
//
//   q(x) = m₊ if x ≥ 0, else m₋;   residual ← x - q(x).
//
// The sign bit decides, which is fast to read. (It takes -0 for a number below 0.)
//
// The owner encodes the sum in the same way, with a residual of its own. The paper has two means
// per column of a weight matrix; here they are per block.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "dist/codecs/bit_planes.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_table.h"

namespace tandem {
namespace {

constexpr std::size_t kMeansBytes = 2 * sizeof(float);

struct Means {
  float positive = 0, negative = 0;
};

Means means_of(std::span<const float> x) {
  constexpr std::size_t kLanes = 16;  // independent sums
  std::array<float, kLanes> positive{}, negative{};
  std::array<std::int32_t, kLanes> below{};
  const auto add = [&](std::size_t k, float v) {
    const auto bits = std::bit_cast<std::int32_t>(v), mask = bits >> 31;
    positive[k] += std::bit_cast<float>(bits & ~mask);
    negative[k] += std::bit_cast<float>(bits & mask);
    below[k] -= mask;
  };
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) add(k, x[i + k]);
  for (; i < x.size(); ++i) add(0, x[i]);
  const auto sum = [](const auto& lanes) {
    return std::accumulate(lanes.begin(), lanes.end(), decltype(lanes[0] + 0){});
  };
  const auto many_below = static_cast<float>(sum(below));
  const float others = static_cast<float>(x.size()) - many_below;
  return {.positive = others > 0 ? sum(positive) / others : 0,
          .negative = many_below > 0 ? sum(negative) / many_below : 0};
}

std::size_t bytes_of(std::size_t count) { return kMeansBytes + groups_of(count); }

// Leaves in x what the encoding leaves out.
std::size_t encode_bits(std::span<float> x, std::byte* to) {
  const Means means = means_of(x);
  std::memcpy(to, &means, kMeansBytes);
  Codes below;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<std::int32_t>(x[i]);
    below[i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(bits) >> 31);
    x[i] -= bits < 0 ? means.negative : means.positive;
  }
  std::fill(below.begin() + static_cast<std::ptrdiff_t>(x.size()), below.end(), std::uint8_t{0});
  pack<1>(below, groups_of(x.size()), to + kMeansBytes);
  return bytes_of(x.size());
}

// Calls f(i, the value of element i).
template <class F>
std::size_t decode_bits(std::span<const std::byte> from, std::size_t count, F&& f) {
  const std::size_t bytes = bytes_of(count);
  require(from.size() >= bytes, "an encoded block has {} bytes instead of {}", from.size(), bytes);
  Means means;
  std::memcpy(&means, from.data(), kMeansBytes);
  Codes below;
  unpack<1>(from.data() + kMeansBytes, groups_of(count), below);
  const float negative = means.negative, positive = means.positive;
  for (std::size_t i = 0; i < count; ++i) f(i, below[i] != 0 ? negative : positive);
  return bytes;
}

class OneBit : public BlockCodec {
 public:
  explicit OneBit(const CodecContext& context)
      : BlockCodec(context), residual_(context, count()), residual_of_sums_(context, count()) {}

  std::size_t most_bytes(std::int64_t count) const override {
    return bytes_of(static_cast<std::size_t>(count));
  }
  std::size_t most_sum_bytes(std::int64_t count) const override { return most_bytes(count); }

  std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) override {
    return encode_bits(residual_.add_to(block, values), to);
  }
  std::size_t add(std::int64_t, std::span<const std::byte> from,
                  std::span<float> sum) const override {
    float* const out = sum.data();
    return decode_bits(from, sum.size(), [&](std::size_t i, float v) { out[i] += v; });
  }
  std::size_t encode_sum(std::int64_t block, std::span<const float> sum, std::byte* to) override {
    return encode_bits(residual_of_sums_.add_to(block, sum), to);
  }
  std::size_t decode_sum(std::int64_t, std::span<const std::byte> from,
                         std::span<float> values) const override {
    float* const out = values.data();
    return decode_bits(from, values.size(), [&](std::size_t i, float v) { out[i] = v; });
  }

  Encoding encoding() override {
    return {.form = Encoding::Form::signs,
            .residual = residual_.values(),
            .residual_of_sums = residual_of_sums_.values()};
  }

  void visit(State& state) override {
    residual_.visit(state, "residual");
    residual_of_sums_.visit(state, "residual of sums");
  }

 private:
  Residual residual_;
  Residual residual_of_sums_;  // of the blocks that this rank owns
};

}  // namespace

std::unique_ptr<Codec> make_onebit(const CodecChoice&, const CodecContext& context) {
  return std::make_unique<OneBit>(context);
}

}  // namespace tandem
