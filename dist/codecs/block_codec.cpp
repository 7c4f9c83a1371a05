#include "dist/codecs/block_codec.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "dist/codecs/device_block_sum.h"
#include "dist/codecs/host_block_sum.h"

namespace tandem {

std::unique_ptr<AllReduce> BlockCodec::make_sum(const AllReduce::Group& group,
                                                const BlockRange& range) {
  if (on_device()) return std::make_unique<DeviceBlockSum>(*this, group, range);
  return std::make_unique<HostBlockSum>(*this, group, range);
}

BlockCodec::BlockCodec(const CodecContext& context) : Codec(context) {
  std::int64_t end = 0;
  for (const Parameter* p : context.parameters.trained()) {
    if (end < p->offset) padding_.push_back({end, p->offset});
    end = p->offset + p->shape.count();
  }
  if (end < count()) padding_.push_back({end, count()});
}

namespace {

// Calls f(number of the block, its values).
template <class T, class F>
void for_each_block(std::int64_t first_block, std::span<T> values, F&& f) {
  for (std::int64_t block = first_block; !values.empty(); ++block) {
    const std::size_t n = std::min(values.size(), static_cast<std::size_t>(kBlock));
    f(block, values.first(n));
    values = values.subspan(n);
  }
}

// Of whole blocks, and perhaps a short one.
template <class Size>
std::size_t size_of_run(std::int64_t count, const Size& size) {
  const std::int64_t rest = count % kBlock;
  return static_cast<std::size_t>(count / kBlock) * size(kBlock) + (rest > 0 ? size(rest) : 0);
}

}  // namespace

std::int64_t part_of(double ratio, std::int64_t count) {
  return std::max<std::int64_t>(1, std::llround(ratio * static_cast<double>(count)));
}

std::size_t BlockCodec::most_bytes_of_run(std::int64_t count) const {
  return size_of_run(count, [&](std::int64_t n) { return most_bytes(n); });
}

std::size_t BlockCodec::most_sum_bytes_of_run(std::int64_t count) const {
  return size_of_run(count, [&](std::int64_t n) { return most_sum_bytes(n); });
}

std::size_t BlockCodec::encode_run(std::int64_t first_block, std::span<const float> values,
                                   std::byte* to) {
  std::size_t bytes = 0;
  for_each_block(first_block, values, [&](std::int64_t block, std::span<const float> v) {
    bytes += encode(block, v, to + bytes);
  });
  return bytes;
}

void BlockCodec::decode_run(std::int64_t first_block, std::span<const std::byte> from,
                            std::span<float> values) const {
  if (!is_phantom(values.data())) std::ranges::fill(values, 0.0F);
  for_each_block(first_block, values, [&](std::int64_t block, std::span<float> v) {
    from = from.subspan(add(block, from, v));
    clear_padding(block, v);
  });
  require(from.empty(), "{} bytes of an encoded gradient are left over", from.size());
}

void BlockCodec::clear_padding(std::int64_t block, std::span<float> values) const {
  const std::int64_t begin = block * kBlock, end = begin + std::ssize(values);
  auto gap = std::ranges::upper_bound(padding_, begin, {}, &Gap::end);
  for (; gap != padding_.end() && gap->first < end; ++gap)
    std::fill(values.begin() + (std::max(gap->first, begin) - begin),
              values.begin() + (std::min(gap->end, end) - begin), 0.0F);
}

std::vector<Segment> BlockCodec::padding_in(const BlockRange& range) const {
  const std::int64_t begin = range.first(), end = begin + range.count;
  std::vector<Segment> found;
  for (const Gap& gap : padding_)
    if (gap.first < end && begin < gap.end) {
      const std::int64_t first = std::max(gap.first, begin);
      found.push_back(
          {.first = first - begin, .count = std::min(gap.end, end) - first, .step = kBlock});
    }
  return found;
}

namespace {

std::size_t checked(std::span<const std::byte> from, std::size_t bytes) {
  require(from.size() >= bytes, "an encoded block has {} bytes instead of {}", from.size(), bytes);
  return bytes;
}

// size(bytes, count) is that of the first block of these bytes.
template <class Size>
std::vector<std::uint32_t> offsets_of(std::span<const std::byte> run, std::int64_t count,
                                      const Size& size) {
  std::vector<std::uint32_t> offsets;
  std::size_t at = 0;
  for (std::int64_t left = count; left > 0; left -= kBlock) {
    offsets.push_back(static_cast<std::uint32_t>(at));
    at += size(run.subspan(at), std::min(left, kBlock));
  }
  require(at == run.size(), "{} bytes of an encoded gradient are left over", run.size() - at);
  return offsets;
}

}  // namespace

std::vector<std::uint32_t> BlockCodec::offsets_in(std::span<const std::byte> run,
                                                  std::int64_t count) const {
  return offsets_of(run, count, [&](auto bytes, auto n) { return block_bytes(bytes, n); });
}

std::vector<std::uint32_t> BlockCodec::sum_offsets_in(std::span<const std::byte> run,
                                                      std::int64_t count) const {
  return offsets_of(run, count, [&](auto bytes, auto n) { return sum_block_bytes(bytes, n); });
}

Encoding BlockCodec::encoding() { throw std::logic_error("this codec encodes on the host"); }

std::size_t BlockCodec::block_bytes(std::span<const std::byte> from, std::int64_t count) const {
  return checked(from, most_bytes(count));
}

std::size_t BlockCodec::sum_block_bytes(std::span<const std::byte> from, std::int64_t count) const {
  return checked(from, most_sum_bytes(count));
}

Residual::Residual(const CodecContext& context, std::int64_t count)
    : remembers_(context.error_feedback) {
  if (remembers_)
    left_out_ = Tensor::zeros({count}, Dtype::f32, context.device);
  else
    passing_.resize(static_cast<std::size_t>(kBlock));
}

std::span<float> Residual::add_to(std::int64_t block, std::span<const float> values) {
  if (!remembers_) {
    std::ranges::copy(values, passing_.begin());
    return std::span(passing_).first(values.size());
  }
  const auto own =
      left_out_.span<float>().subspan(static_cast<std::size_t>(block * kBlock), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) own[i] += values[i];
  return own;
}

void Residual::visit(State& state, const std::string& name) {
  if (remembers_) state(name, left_out_);
}

}  // namespace tandem
