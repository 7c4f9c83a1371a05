// Top-k with memory (Stich et al., 2018; Aji and Heafield, 2017). Of a block x = gradient +
// residual, the k = RATIO · 2048 elements of largest magnitude are sent; the others stay in the
// residual.
//
//   q(x)ᵢ = xᵢ if |xᵢ| is among the k largest, else 0;   residual ← x - q(x).
//
// The owner's sum has at most p·k elements that are not zero. They are sent as they are.
#include <algorithm>

#include "dist/codecs/codec_table.h"
#include "dist/codecs/sparse_codec.h"

namespace tandem {
namespace {

class TopK : public SparseCodec {
 public:
  TopK(double ratio, const CodecContext& context)
      : SparseCodec(context), ratio_(ratio), residual_(context, count()) {}

  std::size_t most_bytes(std::int64_t count) const override {
    return most_sparse_bytes(count, k_of(count));
  }
  std::size_t most_sum_bytes(std::int64_t count) const override {
    return most_sparse_bytes(count, context_.workers * k_of(count));
  }

  std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) override {
    const std::span<float> x = residual_.add_to(block, values);
    const auto k = static_cast<std::size_t>(k_of(std::ssize(x)));
    if (better_whole(k, x.size())) {
      const std::size_t bytes = encode_whole(x, to);
      std::ranges::fill(x, 0.0F);
      return bytes;
    }
    choose_largest(x, k, chosen_);
    const std::size_t bytes = encode_chosen(x, chosen_, to);
    for (const std::uint16_t place : chosen_.all()) x[place] = 0;
    return bytes;
  }

  Encoding encoding() override {
    return {.form = Encoding::Form::largest,
            .residual = residual_.values(),
            .k = static_cast<int>(k_of(kBlock)),
            .k_of_short = static_cast<int>(k_of(count() % kBlock))};
  }

  void visit(State& state) override { residual_.visit(state, "residual"); }

 private:
  std::int64_t k_of(std::int64_t count) const { return part_of(ratio_, count); }

  double ratio_;
  Residual residual_;
  Chosen chosen_;
};

}  // namespace

std::unique_ptr<Codec> make_topk(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<TopK>(choice.value, context);
}

}  // namespace tandem
