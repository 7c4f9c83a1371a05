#include "tensor/cpu/windows.h"

#include <algorithm>
#include <array>

namespace tandem {

template <class T>
Windows<T>::Windows(const Tensor& images, std::int64_t first_channel, std::int64_t channels,
                    std::int64_t height, std::int64_t width, HeightWidth step, const Taps& down,
                    const Taps& right)
    : images_(images),
      first_channel_(first_channel),
      channels_(channels),
      height_(height),
      width_(width),
      step_(step),
      down_(down),
      right_(right),
      joined_(channels == images.size(3) && right.apart == 1),
      zeros_(Tensor::zeros({(joined_ ? right.count : 1) * channels}, images.dtype(),
                           images.device())) {}

template <class T>
typename Windows<T>::Corner Windows<T>::corner(std::int64_t row) const {
  const std::int64_t pixel = row % (height_ * width_), n = row / (height_ * width_);
  return {
      images_.data<T>() + n * images_.size(1) * images_.size(2) * images_.size(3) + first_channel_,
      pixel / width_ * step_.height + down_.first, pixel % width_ * step_.width + right_.first};
}

template <class T>
const T* Windows<T>::at(const Corner& corner, std::int64_t column) const {
  const std::int64_t tap = column / channels_, channel = column % channels_;
  const std::int64_t h = corner.h + tap / right_.count * down_.apart;
  const std::int64_t w = corner.w + tap % right_.count * right_.apart;
  if (h < 0 || h >= images_.size(1) || w < 0 || w >= images_.size(2))
    return zeros_.data<T>() + channel;
  return corner.image + (h * images_.size(2) + w) * images_.size(3) + channel;
}

template <class T>
std::int64_t Windows<T>::run(const Corner* corners, int count, std::int64_t column,
                             std::int64_t end) const {
  const std::int64_t tap = column / channels_, s = tap % right_.count;
  std::int64_t taps = joined_ ? right_.count - s : 1;
  // Taps are neighbours in memory only if no window reaches beyond the left or right edge.
  for (int i = 0; i < count && taps > 1; ++i)
    if (corners[i].w + s < 0 || corners[i].w + right_.count > images_.size(2)) taps = 1;
  return std::min(end, (tap + taps) * channels_) - column;
}

template <class T>
void Windows<T>::pack_rows(std::int64_t first, int count, std::int64_t begin, std::int64_t end,
                           T* panel) const {
  std::array<Corner, panels::kRows> corners;
  for (int i = 0; i < count; ++i) corners[i] = corner(first + i);
  for (std::int64_t column = begin; column < end;) {
    const std::int64_t length = run(corners.data(), count, column, end);
    std::array<const T*, panels::kRows> rows;
    for (int i = 0; i < count; ++i) rows[i] = at(corners[i], column);
    panels::transpose(rows.data(), count, length, panel + (column - begin) * panels::kRows,
                      panels::kRows);
    column += length;
  }
}

template <class T>
void Windows<T>::pack_columns(std::int64_t first, std::int64_t count, std::int64_t begin,
                              std::int64_t end, T* panels, std::int64_t pitch) const {
  constexpr int wide = panels::kColumns<T>;
  // A run ends within a panel only if the channels do not fill panels. The row is then assembled
  // before it is cut.
  const bool whole = channels_ % wide == 0 && begin % wide == 0 && end % wide == 0;
  std::array<T, kMostColumns> together{};
  for (std::int64_t i = 0; i < count; ++i) {
    const Corner here = corner(first + i);
    T* to = panels + i * wide;
    const auto cut = [&](const T* from, std::int64_t length) {
      for (; length > 0; length -= wide, from += wide, to += pitch) copy<wide>(from, to);
    };
    for (std::int64_t column = begin; column < end;) {
      const T* from = at(here, column);
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
