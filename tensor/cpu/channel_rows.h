// How loops over x[…, c] walk through memory. A row is one pixel's channels. If there are few
// channels, several rows are treated as one and the values per channel are repeated, so that the
// inner loop is long for any c. Four rows are processed at a time, so that each value per channel
// is loaded once for four elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/tensor.h"

namespace tandem {

class ChannelRows {
 public:
  ChannelRows(std::int64_t count, std::int64_t channels)
      : channels_(channels),
        copies_((kWidth + channels - 1) / std::max<std::int64_t>(1, channels)),
        count_(channels == 0 ? 0 : count) {}

  std::int64_t channels() const { return channels_; }
  std::int64_t width() const { return channels_ * copies_; }
  // Elements of a tile: about 10 µs of work, and enough rows that combining the tiles' sums is
  // cheap in comparison.
  std::int64_t grain() const {
    return std::max<std::int64_t>(kLeastRows, kElements / std::max<std::int64_t>(1, width())) *
           width();
  }
  std::int64_t count() const { return count_; }
  std::int64_t tiles() const { return count_ == 0 ? 0 : (count_ + grain() - 1) / grain(); }
  std::int64_t begin(std::int64_t tile) const { return tile * grain(); }
  std::int64_t length(std::int64_t tile) const { return std::min(grain(), count_ - begin(tile)); }
  // The second of two passes runs backwards, because the end of the first is still in the cache.
  std::int64_t from_end(std::int64_t tile) const { return tiles() - 1 - tile; }

  // Repeats the values per channel.
  template <class T, class PerChannel>
  void spread(T* wide, PerChannel&& value) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const T v = value(c);
      for (std::int64_t i = c; i < width(); i += channels_) wide[i] = v;
    }
  }

 private:
  static constexpr std::int64_t kWidth = 1024, kLeastRows = 64, kElements = 32 * 1024;
  std::int64_t channels_, copies_, count_;
};

// Calls body.template operator()<rows>(first element, columns) for groups of four rows of `width`,
// then for single rows. The last row may be narrower.
template <class Body>
void each_group_of_rows(std::int64_t count, std::int64_t width, Body&& body) {
  std::int64_t i = 0;
  for (; count - i >= 4 * width; i += 4 * width) body.template operator()<4>(i, width);
  for (; i < count; i += width) body.template operator()<1>(i, std::min(width, count - i));
}

}  // namespace tandem
