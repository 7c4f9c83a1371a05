// The windows of a convolution as the rows of a matrix that is never made: row i belongs to output
// pixel i, and its columns are the taps of the filter times the channels. Pieces of it are written
// into panels by the thread that multiplies them ("im2col", a few rows at a time).
#pragma once

#include <cstdint>

#include "tensor/cpu/panels.h"
#include "tensor/tensor.h"

namespace tandem {

// The taps of a filter in one direction: tap t reads the pixel at step · i + first + t · apart for
// output pixel i.
struct Taps {
  std::int64_t count, first, apart;
};

template <class T>
class Windows {
 public:
  // Over images [n, h, w, c], of whose channels [first_channel, first_channel + channels) are read,
  // for `height` × `width` output pixels per image.
  Windows(const Tensor& images, std::int64_t first_channel, std::int64_t channels,
          std::int64_t height, std::int64_t width, std::int64_t step, const Taps& down,
          const Taps& right);

  std::int64_t rows() const { return images_.size(0) * height_ * width_; }
  std::int64_t columns() const { return down_.count * right_.count * channels_; }

  // Rows [first, first + count), columns [begin, end), as a panel[end - begin][kRows] of A.
  void pack_rows(std::int64_t first, int count, std::int64_t begin, std::int64_t end,
                 T* panel) const;

  // The same piece with rows as the depth: panels[…][count][kColumns] of B, `pitch` apart. At most
  // kMostColumns; those behind `end` in the last panel hold anything.
  static constexpr std::int64_t kMostColumns = 256;
  void pack_columns(std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                    T* panels, std::int64_t pitch) const;

 private:
  // Where the window of a row begins, or would begin if it were inside.
  struct Corner {
    const T* image;
    std::int64_t h, w;
  };
  Corner corner(std::int64_t row) const;
  const T* at(const Corner& corner, std::int64_t column) const;  // zeros, if it lies outside
  // How many columns from `column` on lie one behind the other in memory for all corners.
  std::int64_t run(const Corner* corners, int count, std::int64_t column, std::int64_t end) const;

  Tensor images_;
  std::int64_t first_channel_, channels_, height_, width_, step_;
  Taps down_, right_;
  bool joined_;   // neighbouring taps read neighbouring memory
  Tensor zeros_;  // what padding reads, as long as a run
};

}  // namespace tandem
