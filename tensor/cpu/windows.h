// The windows of a convolution as the rows of a matrix that is never stored. Row i belongs to
// output pixel i; its columns are the filter's taps times the channels. Each thread packs the rows
// that it multiplies, a few at a time ("im2col").
#pragma once

#include <cstdint>

#include "tensor/cpu/panels.h"
#include "tensor/tensor.h"

namespace tandem {

// The taps of a filter in one direction: for output pixel i, tap t reads pixel step · i + first + t
// · apart.
struct Taps {
  std::int64_t count, first, apart;
};

template <class T>
class Windows {
 public:
  // Reads channels [first_channel, first_channel + channels) of images [n, h, w, c], for `height` ×
  // `width` output pixels per image.
  Windows(const Tensor& images, std::int64_t first_channel, std::int64_t channels,
          std::int64_t height, std::int64_t width, HeightWidth step, const Taps& down,
          const Taps& right);

  std::int64_t rows() const { return images_.size(0) * height_ * width_; }
  std::int64_t columns() const { return down_.count * right_.count * channels_; }

  // Rows [first, first + count), columns [begin, end), as a panel[end - begin][kRows] of A.
  void pack_rows(std::int64_t first, int count, std::int64_t begin, std::int64_t end,
                 T* panel) const;

  // The same piece with rows as the depth: panels[…][count][kColumns] of B, `pitch` apart. At most
  // kMostColumns columns; those after `end` in the last panel are zero.
  static constexpr std::int64_t kMostColumns = 256;
  void pack_columns(std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                    T* panels, std::int64_t pitch) const;

 private:
  // The corner of a row's window; it may lie outside the image.
  struct Corner {
    const T* image;
    std::int64_t h, w;
  };
  Corner corner(std::int64_t row) const;
  const T* at(const Corner& corner, std::int64_t column) const;  // zeros if outside the image
  // The number of columns, from `column` on, that are contiguous in memory for all corners.
  std::int64_t run(const Corner* corners, int count, std::int64_t column, std::int64_t end) const;

  Tensor images_;
  std::int64_t first_channel_, channels_, height_, width_;
  HeightWidth step_;
  Taps down_, right_;
  bool joined_;   // neighbouring taps read neighbouring memory
  Tensor zeros_;  // read in place of padding; as long as a run
};

}  // namespace tandem
