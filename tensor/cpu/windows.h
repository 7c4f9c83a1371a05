// The windows of a convolution as the rows of a matrix that is never made: row i belongs to output
// pixel i, and its columns are the taps of the filter times the channels. Pieces of it are written
// into panels by the thread that multiplies them ("im2col", a few rows at a time).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tensor/cpu/panels.h"
#include "tensor/shape.h"

namespace tandem {

// A tap reads the pixel at (step · i + down, step · j + right) for the output pixel (i, j).
struct Tap {
  std::int64_t down, right;
};

template <class T>
class Windows {
 public:
  // Over images [n, h, w, c], of whose channels [first_channel, first_channel + channels) are read,
  // for `height` × `width` output pixels per image.
  Windows(const T* images, const Shape& shape, std::int64_t first_channel, std::int64_t channels,
          std::int64_t height, std::int64_t width, std::int64_t step, std::vector<Tap> taps);

  std::int64_t rows() const { return shape_[0] * height_ * width_; }
  std::int64_t columns() const { return static_cast<std::int64_t>(taps_.size()) * channels_; }

  // Rows [first, first + count), columns [begin, end), as a panel[end - begin][kRows] of A.
  void pack_rows(std::int64_t first, int count, std::int64_t begin, std::int64_t end,
                 T* panel) const;

  // The same piece with rows as the depth: panels[…][count][kColumns] of B, `pitch` apart. At most
  // kMostColumns; those behind `end` in the last panel hold anything.
  static constexpr std::int64_t kMostColumns = 256;
  void pack_columns(std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                    T* panels, std::int64_t pitch) const;

 private:
  // The pixel that tap (0, 0) of a row reads, or would read if it were inside.
  struct Corner {
    const T* image;
    std::int64_t h, w;
  };
  Corner corner(std::int64_t row) const;
  const T* at(const Corner& corner, const Tap& tap) const;  // zeros, if it lies outside
  // How many columns from `column` on lie one behind the other in memory for all corners.
  std::int64_t run(const Corner* corners, int count, std::int64_t column, std::int64_t end) const;

  const T* images_;
  Shape shape_;
  std::int64_t first_channel_, channels_, height_, width_, step_;
  std::vector<Tap> taps_;
  std::vector<T> zeros_;              // what padding reads
  std::vector<std::int64_t> joined_;  // by tap: how many from it on are neighbours in memory
};

}  // namespace tandem
