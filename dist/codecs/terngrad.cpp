// TernGrad (Wen et al., 2017). With a block's largest magnitude s, an element becomes
//
//   t(v) = s · sign(v) with probability |v|/s, else 0,   so that E[t(v)] = v.
//
// Before that, magnitudes above CLIP standard deviations of the block are cut (the paper's gradient
// clipping, 2.5). A smaller s means less noise, but the large elements are no longer right in the
// mean. CLIP = 0 cuts nothing. The paper has a scale per layer; here it is one per block.
#include <cmath>

#include "dist/codecs/codec_table.h"
#include "dist/codecs/level_codec.h"

namespace tandem {
namespace {

class TernGrad : public LevelCodec {
 public:
  TernGrad(double clip, const CodecContext& context)
      : LevelCodec(2, context), clip_(static_cast<float>(clip)) {}

 private:
  float clip(std::span<const float> values) const override {
    if (clip_ == 0) return 0;
    constexpr std::size_t kLanes = 16;  // independent sums
    float sums[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= values.size(); i += kLanes)
      for (std::size_t k = 0; k < kLanes; ++k) sums[k] += values[i + k] * values[i + k];
    float squares = 0;
    for (; i < values.size(); ++i) squares += values[i] * values[i];
    for (const float sum : sums) squares += sum;
    return clip_ * std::sqrt(squares / static_cast<float>(values.size()));
  }

  float clip_deviations() const override { return clip_; }

  float clip_;
};

}  // namespace

std::unique_ptr<Codec> make_terngrad(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<TernGrad>(choice.value, context);
}

}  // namespace tandem
