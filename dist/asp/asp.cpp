#include "dist/asp/asp.h"

namespace tandem {

void AspServer::update(const Push& push) {
  Spans& spans = c_.communication.spans();
  {
    const Spans::Scope span(spans, adding(c_.compressor.lossless()));
    c_.compressor.decompress(push.bytes,
                             part_of(c_.parameters.gradients(), push.segment).span<float>());
  }
  const Spans::Scope span(spans, SpanKind::update);
  optimizer_.update_part(push.iteration, push.segment.first, push.segment.count);
}

}  // namespace tandem
