#include "dist/compress/hop.h"

#include <algorithm>
#include <array>

#include "dist/block.h"

namespace tandem {
namespace {

void add_floats(std::span<const std::byte> received, std::int64_t count, std::span<std::byte> own) {
  const auto* __restrict in = reinterpret_cast<const float*>(received.data());
  auto* __restrict out = reinterpret_cast<float*>(own.data());
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i] + out[i];
}

void add_run(const Compressor& compressor, std::span<const std::byte> received, std::int64_t count,
             std::span<std::byte> own) {
  if (compressor.lossless()) return add_floats(received, count, own);
  std::array<float, kBlock> values;  // stays in the first-level cache
  const std::size_t stride = compressor.bytes(kBlock);
  for (std::size_t byte = 0; count > 0; count -= kBlock, byte += stride) {
    const auto block = std::span(values).first(static_cast<std::size_t>(std::min(kBlock, count)));
    const std::size_t bytes = compressor.bytes(std::ssize(block));
    compressor.decompress(own.subspan(byte, bytes), block);
    compressor.add(received.subspan(byte, bytes), block, own.subspan(byte, bytes));
  }
}

}  // namespace

void add_received(const Compressor& compressor, std::span<const std::byte> received,
                  std::int64_t count, std::span<std::byte> own, ThreadPool* helpers) {
  constexpr std::int64_t kPart = 8 * kBlock;
  run_ranges(helpers, count, kPart, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t first = compressor.bytes(begin);
    add_run(compressor, received.subspan(first), end - begin, own.subspan(first));
  });
}

}  // namespace tandem
