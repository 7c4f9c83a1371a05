#include "dist/codecs/sparse.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

using Number = std::uint16_t;
constexpr Number kWhole = 0xffff;  // in place of the number: all values follow
constexpr std::size_t kPlaceAndValue = sizeof(std::uint16_t) + sizeof(float);

struct Block {
  bool whole;
  std::size_t elements;  // that were sent
  std::size_t bytes;
  const std::byte* content;  // places and values, or all values
};

std::uint16_t place_in(const Block& block, std::size_t i) {
  std::uint16_t place = 0;
  std::memcpy(&place, block.content + i * sizeof place, sizeof place);
  return place;
}

// The first block of these bytes. All of its places are below `count`.
Block first_block(std::span<const std::byte> from, std::size_t count) {
  Number number = 0;
  require(from.size() >= sizeof number, "an encoded block is cut off");
  std::memcpy(&number, from.data(), sizeof number);
  Block block{.whole = number == kWhole, .content = from.data() + sizeof number};
  block.elements = block.whole ? count : number;
  block.bytes = sizeof number + block.elements * (block.whole ? sizeof(float) : kPlaceAndValue);
  require(from.size() >= block.bytes, "an encoded block has {} bytes instead of {}", from.size(),
          block.bytes);
  if (block.whole || block.elements == 0) return block;
  // Finding the largest place is faster than a check of each.
  std::uint16_t largest = 0;
  for (std::size_t i = 0; i < block.elements; ++i) largest = std::max(largest, place_in(block, i));
  require(largest < count, "element {} of an encoded block of {}", largest, count);
  return block;
}

// Calls whole(values as bytes), or one(place, value) for each element.
template <class Whole, class One>
std::size_t read(std::span<const std::byte> from, std::size_t count, Whole&& whole, One&& one) {
  const Block block = first_block(from, count);
  if (block.whole) {
    whole(block.content);
    return block.bytes;
  }
  const std::byte* const values = block.content + block.elements * sizeof(std::uint16_t);
  for (std::size_t i = 0; i < block.elements; ++i) {
    float value = 0;
    std::memcpy(&value, values + i * sizeof value, sizeof value);
    one(place_in(block, i), value);
  }
  return block.bytes;
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

namespace {

// How many keys reach `least`. It has no branches, so it is fast.
template <class Key>
std::size_t count_from(std::span<const Key> keys, Key least) {
  constexpr std::size_t kLanes = 32;  // independent sums
  std::array<Key, kLanes> counts{};
  const auto count = [&](std::size_t k, Key key) {
    counts[k] = static_cast<Key>(counts[k] + (key >= least ? 1 : 0));
  };
  std::size_t i = 0;
  for (; i + kLanes <= keys.size(); i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) count(k, keys[i + k]);
  for (; i < keys.size(); ++i) count(i % kLanes, keys[i]);
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

// A number that k keys reach or, if there is none, the largest that more than k reach. At least k
// reach `low`, and fewer reach `high`.
template <class Key>
std::uint32_t threshold(std::span<const Key> keys, std::size_t k, std::uint32_t low,
                        std::uint32_t high) {
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::size_t count = count_from(keys, static_cast<Key>(middle));
    if (count == k) return middle;
    (count > k ? low : high) = middle;
  }
  return low;
}

// The upper 16 of a magnitude's 31 bits.
constexpr int kKeyShift = 15;
using Key = std::uint16_t;

// At least k keys reach this number, and not many more.
std::uint32_t lower_bound_of(std::span<const Key> keys, std::size_t k) {
  // The largest of every 256th key. If k of them reach a number, then k keys reach it.
  constexpr std::size_t kMaxima = 256, kMostOfThem = 224;
  std::array<Key, kMaxima> maxima{};
  for (std::size_t i = 0; i < keys.size(); i += kMaxima) {
    const std::size_t n = std::min(kMaxima, keys.size() - i);
    for (std::size_t j = 0; j < n; ++j) {
      const Key key = keys[i + j], before = maxima[j];
      maxima[j] = before < key ? key : before;
    }
  }
  Key least = maxima[0], most = 0;
  for (const Key key : maxima) {
    least = key < least ? key : least;
    most = key < most ? most : key;
  }
  if (keys.size() < kMaxima || k > kMostOfThem) return threshold(keys, k, 0, most + 1U);
  return threshold(std::span<const Key>(maxima), k, least, most + 1U);
}

}  // namespace

// Finds few candidates by their keys, and then the largest of these.
void choose_largest(std::span<const float> values, std::size_t k, Chosen& chosen) {
  const std::size_t n = values.size();
  chosen.count = 0;
  if (k >= n) {
    for (std::size_t i = 0; i < n; ++i) chosen.add(i);
    return;
  }
  std::array<Key, kBlock> keys;
  for (std::size_t i = 0; i < n; ++i)
    keys[i] = static_cast<Key>(magnitude_bits(values[i]) >> kKeyShift);
  const std::uint32_t low = lower_bound_of(std::span(keys).first(n), k);
  const auto least = static_cast<Key>(low);
  chosen.add_where(0, n, [&](std::size_t i) { return keys[i] >= least; });
  if (chosen.count == k) return;

  std::array<std::uint32_t, kBlock> sizes;
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < chosen.count; ++i) {
    sizes[i] = magnitude_bits(values[chosen.places[i]]);
    largest = std::max(largest, sizes[i]);
  }
  const auto candidates = std::span<const std::uint32_t>(sizes).first(chosen.count);
  const std::uint32_t last = threshold(candidates, k, low << kKeyShift, largest + 1);
  const std::size_t above = count_from(candidates, last + 1);
  // Of elements that are just `last`, the first ones.
  std::size_t of_last = k - above;
  chosen.count = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool is_last = candidates[i] == last && of_last > 0;
    of_last -= is_last ? 1 : 0;
    chosen.add_if(candidates[i] > last || is_last, chosen.places[i]);
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
  chosen.add_where(0, values.size(), [&](std::size_t i) { return values[i] != 0; });
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

std::size_t sparse_bytes(std::span<const std::byte> from, std::int64_t count) {
  return first_block(from, static_cast<std::size_t>(count)).bytes;
}

std::size_t most_sparse_bytes(std::int64_t count, std::int64_t chosen) {
  const auto n = static_cast<std::size_t>(count), k = static_cast<std::size_t>(chosen);
  return sizeof(Number) + std::min(n * sizeof(float), k * kPlaceAndValue);
}

}  // namespace tandem
