#include "tensor/cpu/windows.h"

#include <algorithm>

namespace tandem {

template <class T>
Windows<T>::Windows(const T* images, const Shape& shape, std::int64_t first_channel,
                    std::int64_t channels, std::int64_t height, std::int64_t width,
                    std::int64_t step, std::vector<Tap> taps)
    : images_(images),
      shape_(shape),
      first_channel_(first_channel),
      channels_(channels),
      height_(height),
      width_(width),
      step_(step),
      taps_(std::move(taps)) {
  joined_.assign(taps_.size(), 1);
  if (channels_ == shape_[3])
    for (std::size_t t = taps_.size(); t-- > 1;)
      if (taps_[t - 1].down == taps_[t].down && taps_[t - 1].right + 1 == taps_[t].right)
        joined_[t - 1] = joined_[t] + 1;
  const std::int64_t longest = taps_.empty() ? 0 : *std::ranges::max_element(joined_);
  zeros_.assign(static_cast<std::size_t>(longest * channels_), T{0});
}

template <class T>
typename Windows<T>::Corner Windows<T>::corner(std::int64_t row) const {
  const std::int64_t pixel = row % (height_ * width_), n = row / (height_ * width_);
  return {images_ + n * shape_[1] * shape_[2] * shape_[3] + first_channel_, pixel / width_ * step_,
          pixel % width_ * step_};
}

template <class T>
const T* Windows<T>::at(const Corner& corner, const Tap& tap) const {
  const std::int64_t h = corner.h + tap.down, w = corner.w + tap.right;
  if (h < 0 || h >= shape_[1] || w < 0 || w >= shape_[2]) return zeros_.data();
  return corner.image + (h * shape_[2] + w) * shape_[3];
}

template <class T>
std::int64_t Windows<T>::run(const Corner* corners, int count, std::int64_t column,
                             std::int64_t end) const {
  const auto tap = static_cast<std::size_t>(column / channels_);
  std::int64_t taps = joined_[tap];
  // Neighbours only where no window reaches over the left or right edge.
  const std::int64_t left = taps_[tap].right, right = left + taps - 1;
  for (int i = 0; i < count && taps > 1; ++i)
    if (corners[i].w + left < 0 || corners[i].w + right >= shape_[2]) taps = 1;
  return std::min(end, (static_cast<std::int64_t>(tap) + taps) * channels_) - column;
}

template <class T>
void Windows<T>::pack_rows(std::int64_t first, int count, std::int64_t begin, std::int64_t end,
                           T* panel) const {
  std::array<Corner, panels::kRows> corners;
  for (int i = 0; i < count; ++i) corners[i] = corner(first + i);
  for (std::int64_t column = begin; column < end;) {
    const std::int64_t length = run(corners.data(), count, column, end);
    const Tap& tap = taps_[static_cast<std::size_t>(column / channels_)];
    std::array<const T*, panels::kRows> rows;
    for (int i = 0; i < count; ++i) rows[i] = at(corners[i], tap) + column % channels_;
    panels::transpose(rows.data(), count, length, panel + (column - begin) * panels::kRows,
                      panels::kRows);
    column += length;
  }
}

template <class T>
void Windows<T>::pack_columns(std::int64_t first, std::int64_t count, std::int64_t begin,
                              std::int64_t end, T* panels, std::int64_t pitch) const {
  constexpr int wide = panels::kColumns<T>;
  // A run ends within a panel only where the channels do not fill panels; the row is then put
  // together before it is cut.
  const bool whole = channels_ % wide == 0 && begin % wide == 0 && end % wide == 0;
  std::array<T, kMostColumns> together;
  for (std::int64_t i = 0; i < count; ++i) {
    const Corner here = corner(first + i);
    T* to = panels + i * wide;
    const auto cut = [&](const T* from, std::int64_t length) {
      for (; length > 0; length -= wide, from += wide, to += pitch) copy<wide>(from, to);
    };
    for (std::int64_t column = begin; column < end;) {
      const T* from =
          at(here, taps_[static_cast<std::size_t>(column / channels_)]) + column % channels_;
      const std::int64_t length = run(&here, 1, column, end);
      if (whole)
        cut(from, length);
      else
        std::copy_n(from, length, together.data() + (column - begin));
      column += length;
    }
    if (!whole) cut(together.data(), end - begin);
  }
}

template class Windows<float>;
template class Windows<double>;

}  // namespace tandem
