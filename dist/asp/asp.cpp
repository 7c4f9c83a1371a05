#include "dist/asp/asp.h"

#include "dist/block.h"
#include "dist/codecs/block_codec.h"

namespace tandem {

void AspServer::update(const Push& push) {
  Spans& spans = c_.communication.spans();
  {
    const std::span<float> gradient =
        part_of(c_.parameters.gradients(), push.segment).span<float>();
    const Spans::Scope span(spans, adding(c_.compressor.lossless() && !c_.codec));
    if (c_.codec) {
      c_.codec->begin(push.iteration);
      c_.codec->blocks()->decode_run(push.segment.first / kBlock, push.bytes, gradient);
    } else {
      c_.compressor.decompress(push.bytes, gradient);
    }
  }
  const Spans::Scope span(spans, SpanKind::update);
  optimizer_.update_part(push.iteration, push.segment.first, push.segment.count);
}

}  // namespace tandem
