#include "dist/codecs/sparse.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace tandem {
namespace {

using Number = std::uint16_t;
constexpr Number kWhole = 0xffff;  // in place of the number: all values follow
constexpr std::size_t kPlaceAndValue = sizeof(std::uint16_t) + sizeof(float);

// Calls whole(values as bytes), or one(place, value) for each element.
template <class Whole, class One>
std::size_t read(std::span<const std::byte> from, std::size_t count, Whole&& whole, One&& one) {
  Number number = 0;
  require(from.size() >= sizeof number, "an encoded block is cut off");
  std::memcpy(&number, from.data(), sizeof number);
  const std::size_t each = number == kWhole ? sizeof(float) : kPlaceAndValue;
  const std::size_t elements = number == kWhole ? count : number;
  const std::size_t bytes = sizeof number + elements * each;
  require(from.size() >= bytes, "an encoded block has {} bytes instead of {}", from.size(), bytes);
  const std::byte* const at = from.data() + sizeof number;
  if (number == kWhole) {
    whole(at);
    return bytes;
  }
  const std::byte* const values = at + elements * sizeof(std::uint16_t);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint16_t place = 0;
    float value = 0;
    std::memcpy(&place, at + i * sizeof place, sizeof place);
    std::memcpy(&value, values + i * sizeof value, sizeof value);
    require(place < count, "element {} of an encoded block of {}", place, count);
    one(place, value);
  }
  return bytes;
}

}  // namespace

bool better_whole(std::size_t chosen, std::size_t count) {
  return chosen * kPlaceAndValue >= count * sizeof(float);
}

std::size_t encode_whole(std::span<const float> values, std::byte* to) {
  std::memcpy(to, &kWhole, sizeof kWhole);
  std::memcpy(to + sizeof kWhole, values.data(), values.size_bytes());
  return sizeof kWhole + values.size_bytes();
}

// Searches the bits of the threshold. Counting is fast, because it has no branches.
void choose_largest(std::span<const float> values, std::size_t k, Chosen& chosen) {
  const std::size_t n = values.size();
  chosen.count = 0;
  if (k >= n) {
    for (std::size_t i = 0; i < n; ++i) chosen.add(i);
    return;
  }
  std::array<std::int32_t, kBlock> sizes;  // magnitudes as integers have the order of the floats
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sizes[i] = std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff;
    largest = std::max(largest, sizes[i]);
  }
  const auto at_least = [&](std::int32_t threshold) {
    std::int32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += sizes[i] >= threshold ? 1 : 0;
    return static_cast<std::size_t>(count);
  };
  // At least k elements reach `low`; fewer reach `high`.
  std::int32_t low = 0, high = largest + 1;
  std::size_t reach = n;
  while (reach != k && high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    const std::size_t count = at_least(middle);
    (count >= k ? low : high) = middle;
    if (count >= k) reach = count;
  }
  // Of elements that are just `low`, the first ones.
  std::size_t of_low = reach == k ? n : k - at_least(low + 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (sizes[i] < low) continue;
    if (sizes[i] == low) {
      if (of_low == 0) continue;
      --of_low;
    }
    chosen.add(i);
  }
}

std::size_t encode_chosen(std::span<const float> values, const Chosen& chosen, std::byte* to) {
  require(!better_whole(chosen.count, values.size()), "{} of {} elements are not few", chosen.count,
          values.size());
  const auto number = static_cast<Number>(chosen.count);
  std::byte* at = to;
  const auto write = [&](const auto& value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  write(number);
  for (const std::uint16_t place : chosen.all()) write(place);
  for (const std::uint16_t place : chosen.all()) write(values[place]);
  return static_cast<std::size_t>(at - to);
}

std::size_t encode_sparse(std::span<const float> values, std::byte* to) {
  Chosen chosen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    chosen.places[chosen.count] = static_cast<std::uint16_t>(i);
    chosen.count += values[i] != 0 ? 1 : 0;
  }
  return better_whole(chosen.count, values.size()) ? encode_whole(values, to)
                                                   : encode_chosen(values, chosen, to);
}

std::size_t add_sparse(std::span<const std::byte> from, std::span<float> sum) {
  return read(
      from, sum.size(),
      [&](const std::byte* bytes) {
        for (float& s : sum) {
          float value = 0;
          std::memcpy(&value, bytes, sizeof value);
          bytes += sizeof value;
          s += value;
        }
      },
      [&](std::size_t i, float value) { sum[i] += value; });
}

std::size_t decode_sparse(std::span<const std::byte> from, std::span<float> values) {
  std::ranges::fill(values, 0.0F);
  return read(
      from, values.size(),
      [&](const std::byte* bytes) { std::memcpy(values.data(), bytes, values.size_bytes()); },
      [&](std::size_t i, float value) { values[i] = value; });
}

std::size_t most_sparse_bytes(std::int64_t count, std::int64_t chosen) {
  const auto n = static_cast<std::size_t>(count), k = static_cast<std::size_t>(chosen);
  return sizeof(Number) + std::min(n * sizeof(float), k * kPlaceAndValue);
}

}  // namespace tandem
