#include "dist/host_staging.h"

#include <algorithm>

#include "base/error.h"
#include "dist/block.h"
#include "dist/compress/magnitude.h"
#include "tensor/backend.h"

namespace tandem {

void HostStaging::begin(const Tensor& values, const EventPtr& ready, const Segments& segments) {
  (void)ready;  // on the CPU work is done when its call returns
  begin(values.span<float>(), segments.length);
}

void HostStaging::begin(std::span<float> values, std::int64_t length) {
  values_ = values;
  length_ = length;
  if (!compressor_.lossless()) packed_.resize(compressor_.bytes(std::ssize(values)));
}

bool HostStaging::finite() { return all_finite(values_); }

void HostStaging::wait(std::int64_t segment) {
  if (compressor_.lossless()) return;
  const Spans::Scope span(spans_, SpanKind::compress);
  compressor_.compress(values_of(segment), packed(segment));
}

std::span<std::byte> HostStaging::packed(std::int64_t segment) {
  const auto values = values_of(segment);
  if (compressor_.lossless()) return std::as_writable_bytes(values);
  return std::span(packed_).subspan(compressor_.bytes(segment * length_),
                                    compressor_.bytes(std::ssize(values)));
}

void HostStaging::put(std::int64_t segment) {
  if (compressor_.lossless()) return;
  const Spans::Scope span(spans_, SpanKind::compress);
  compressor_.decompress(packed(segment), values_of(segment));
}

EventPtr HostStaging::finish() {
  values_ = {};
  return nullptr;
}

std::span<float> HostStaging::values_of(std::int64_t segment) const {
  const auto first = static_cast<std::size_t>(segment * length_);
  return values_.subspan(first,
                         std::min(static_cast<std::size_t>(length_), values_.size() - first));
}

std::unique_ptr<Staging> make_staging(const Device& device, const Compressor& compressor,
                                      std::int64_t count, Spans& spans) {
  if (device.is_cpu()) return std::make_unique<HostStaging>(compressor, spans);
  auto staging = device.backend().make_staging(compressor.packing(), count, kBlock);
  require(staging != nullptr, "the device {} cannot send gradients", device.name());
  return staging;
}

}  // namespace tandem
