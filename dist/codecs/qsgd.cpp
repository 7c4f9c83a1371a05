// QSGD (Alistarh et al., 2017). With L = 2^(BITS-1) - 1 levels and a block's largest magnitude s,
//
//   q(v) = s/L · ξ · sign(v),   ξ = ⌊|v|·L/s⌋ or one more, at random, so that E[q(v)] = v.
//
// The paper scales by the norm or, in its experiments, by the largest magnitude; here it is the
// latter. Its workers send their encoded gradients to each other; here owners add them.
#include "dist/codecs/codec_table.h"
#include "dist/codecs/level_codec.h"

namespace tandem {

std::unique_ptr<Codec> make_qsgd(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<LevelCodec>(static_cast<int>(choice.value), context);
}

}  // namespace tandem
