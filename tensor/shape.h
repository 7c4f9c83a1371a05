// The sizes of a tensor, outermost first. Held inline: copying a shape never allocates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.h"

namespace tandem {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // rank 0: a scalar, one element
  Shape(std::initializer_list<std::int64_t> sizes)
      : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
    require(sizes.size() <= kMaxRank, "a shape has at most {} sizes, not {}", kMaxRank,
            sizes.size());
    for (std::int64_t size : sizes) require(size >= 0, "a shape cannot hold the size {}", size);
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  }

  int rank() const { return rank_; }
  // Negative indices count from the innermost size: shape[-1] is the last one.
  std::int64_t operator[](int i) const;
  std::span<const std::int64_t> sizes() const {
    return {sizes_.data(), static_cast<std::size_t>(rank_)};
  }
  // Number of elements.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (std::int64_t size : sizes()) product *= size;
    return product;
  }

  // "[100, 784]"
  std::string str() const {
    std::string text = "[";
    for (const std::int64_t size : sizes())
      text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + "]";
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::ranges::equal(a.sizes(), b.sizes());
  }

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// A size or distance in both directions of an image. One number stands for two equal ones.
struct HeightWidth {
  constexpr HeightWidth(std::int64_t both) : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t h, std::int64_t w) : height(h), width(w) {}

  bool square() const { return height == width; }
  friend bool operator==(const HeightWidth&, const HeightWidth&) = default;

  std::int64_t height, width;
};

}  // namespace tandem

// Lets {} format a shape.
template <>
struct fmt::formatter<tandem::Shape> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const tandem::Shape& shape, Context& context) const {
    const std::string text = shape.str();
    return std::copy(text.begin(), text.end(), context.out());
  }
};

// As "3" or "1x7".
template <>
struct fmt::formatter<tandem::HeightWidth> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const tandem::HeightWidth& size, Context& context) const {
    return size.square() ? fmt::format_to(context.out(), "{}", size.height)
                         : fmt::format_to(context.out(), "{}x{}", size.height, size.width);
  }
};

inline std::int64_t tandem::Shape::operator[](int i) const {
  const int index = i < 0 ? i + rank_ : i;
  require(index >= 0 && index < rank_, "size {} of the shape {} does not exist", i, *this);
  return sizes_[static_cast<std::size_t>(index)];
}
