#include "dist/host_staging.h"

#include <algorithm>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "dist/block.h"
#include "tensor/backend.h"

namespace tandem {

void HostStaging::begin(const Tensor& values, const EventPtr& ready,
                        const std::vector<Segment>& segments, Fill fill) {
  (void)ready, (void)fill;  // on the CPU, work is done when its call returns
  begin(values.span<float>(), segments);
}

void HostStaging::begin(std::span<float> values, const std::vector<Segment>& segments) {
  values_ = values;
  segments_ = &segments;
  if (compressor_.lossless()) return;
  places_ = places_of(segments, compressor_.packing(), kBlock);
  is_packed_.assign(segments.size(), false);
  if (packed_.span().size() < places_.back()) packed_ = compressor_.memory(places_.back());
}

bool HostStaging::finite() { return compressor_.finite(values_); }

// Calls f(values, packed bytes) for each contiguous run of a segment. A processor that prefetches
// does not know where the next run begins, so this asks for the beginning of the one after it.
template <class Byte, class F>
void HostStaging::for_each_run(std::size_t segment, const PiecesOf<Byte>& packed, F&& f) const {
  constexpr std::int64_t kLine = 16, kLines = 8;
  const Segment& s = (*segments_)[segment];
  const bool prefetches = !is_phantom(values_.data());
  s.for_each_run(kBlock, [&](std::int64_t first, std::int64_t i, std::int64_t n) {
    if (const std::int64_t later = first + 2 * s.step;
        prefetches && later + kLines * kLine <= std::ssize(values_))
      for (std::int64_t line = 0; line < kLines; ++line)
        __builtin_prefetch(values_.data() + later + line * kLine);
    f(values_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)),
      packed.at(compressor_.bytes(i), compressor_.bytes(n)));
  });
}

// A ring's segments consist of every p-th block. On a Neoverse-V1, packing them takes up to 1.4
// times as long as packing consecutive blocks; on Xeons it takes no longer.
HostStaging::Packs HostStaging::faster() {
#if defined(__x86_64__)
  return Packs::segments;
#else
  return Packs::rows;
#endif
}

// 16-bit values are always packed segment by segment. Packing fewer bits can take longer than
// sending them. Simulations pack rows wherever they run, so that their times are the same.
void HostStaging::wait(std::size_t segment) {
  constexpr std::int64_t kLong = 32 * kBlock;
  if (compressor_.lossless() || is_packed_[segment]) return;
  const Spans::Scope span(spans_, SpanKind::compress);
  const Segment& s = (*segments_)[segment];
  const bool by_rows = packs_ == Packs::rows || is_phantom(values_.data());
  if (by_rows && !compressor_.divides_blocks() && s.step > kBlock && s.count >= kLong)
    return pack_row(s);
  is_packed_[segment] = true;
  for_each_run(segment, packed(segment),
               [&](auto values, auto bytes) { compressor_.compress(values, bytes); });
}

// Packs this segment and those between its blocks, block by block in the order of addresses.
void HostStaging::pack_row(const Segment& one) {
  row_.clear();
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < segments_->size(); ++i) {
    const Segment& s = (*segments_)[i];
    if (s.count == 0 || s.step != one.step || s.first / s.step != one.first / one.step) continue;
    if (is_packed_[i]) continue;  // a shorter one; its values may be the sum by now
    row_.push_back(i);
    is_packed_[i] = true;
    longest = std::max(longest, s.count);
  }
  std::ranges::sort(row_, {}, [&](std::size_t i) { return (*segments_)[i].first; });
  for (std::int64_t at = 0; at < longest; at += kBlock)
    for (const std::size_t i : row_) {
      const Segment& s = (*segments_)[i];
      const std::int64_t n = std::min(kBlock, s.count - at), first = s.first + at / kBlock * s.step;
      if (n <= 0) continue;
      compressor_.compress(
          values_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)),
          packed(i).at(compressor_.bytes(at), compressor_.bytes(n)));
    }
}

Pieces HostStaging::packed(std::size_t segment) {
  const Segment& s = (*segments_)[segment];
  const std::size_t bytes = compressor_.bytes(s.count);
  if (!compressor_.lossless()) return packed_.span().subspan(places_[segment], bytes);
  const std::int64_t head = s.step == kBlock ? s.count : s.head(kBlock);
  return {reinterpret_cast<std::byte*>(values_.data() + s.first), bytes, compressor_.bytes(head),
          compressor_.bytes(kBlock), compressor_.bytes(s.step)};
}

void HostStaging::put(std::size_t segment, const ConstPieces& bytes) {
  if (compressor_.lossless() && bytes.data == packed(segment).data) return;
  const Spans::Scope span(spans_, adding(compressor_.lossless()));
  for_each_run(segment, bytes,
               [&](auto values, auto packed) { compressor_.decompress(packed, values); });
}

EventPtr HostStaging::finish() {
  values_ = {};
  return nullptr;
}

std::unique_ptr<Staging> make_staging(const Device& device, const Compressor& compressor,
                                      std::int64_t count, Spans& spans) {
  if (device.is_cpu()) return std::make_unique<HostStaging>(compressor, spans);
  auto staging = device.backend().make_staging(compressor.packing(), count, kBlock);
  require(staging != nullptr, "the device {} cannot send gradients", device.name());
  return staging;
}

}  // namespace tandem
