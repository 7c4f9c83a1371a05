#include "data/resize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/data/image_files.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// The weight of pixel `k` of `from` in pixel `i` of `to`: a triangle around the place of i, at
// least one pixel wide to each side. To be divided by the sum over k.
double weight(std::int64_t k, std::int64_t i, std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double distance =
      std::abs(static_cast<double>(k) + 0.5 - (static_cast<double>(i) + 0.5) * scale);
  return std::max(0.0, 1 - distance / std::max(1.0, scale));
}

double slow_pixel(const std::vector<std::uint8_t>& in, std::int64_t height, std::int64_t width,
                  std::int64_t to_height, std::int64_t to_width, std::int64_t y, std::int64_t x,
                  std::int64_t c) {
  double sum = 0, weights = 0;
  for (std::int64_t j = 0; j < height; ++j)
    for (std::int64_t i = 0; i < width; ++i) {
      const double w = weight(j, y, height, to_height) * weight(i, x, width, to_width);
      sum += w * in[static_cast<std::size_t>((j * width + i) * 3 + c)];
      weights += w;
    }
  return sum / weights;
}

std::vector<std::uint8_t> resized(const ImageView& view, std::int64_t height, std::int64_t width,
                                  const Window& window) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(window.height * window.width * 3));
  resize(view, height, width, window, out);
  return out;
}

}  // namespace

TEST_CASE("resize: agrees with the definition, larger and smaller") {
  const std::int64_t height = 19, width = 23;
  const auto in = random_picture(height, width, 1);
  const ImageView view{in.data(), height, width, 3 * width};
  for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{30, 40},
                             {7, 5},
                             {40, 6},
                             {1, 1},
                             {19, 23},
                             {18, 24}}) {
    const auto out = resized(view, h, w, {0, 0, h, w});
    std::size_t i = 0;
    double worst = 0;
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t x = 0; x < w; ++x)
        for (std::int64_t c = 0; c < 3; ++c)
          worst =
              std::max(worst, std::abs(out[i++] - slow_pixel(in, height, width, h, w, y, x, c)));
    CHECK(worst < 1.01);  // rounded twice
  }
}

TEST_CASE("resize: the same size changes nothing, a uniform colour stays the same") {
  const auto in = random_picture(9, 8, 2);
  const ImageView view{in.data(), 9, 8, 24};
  CHECK(resized(view, 9, 8, {0, 0, 9, 8}) == in);
  for (const int colour : {0, 1, 127, 254, 255}) {
    const auto even = picture(9, 8, 3, [&](int, int, int) { return colour; });
    const auto out = resized({even.data(), 9, 8, 24}, 31, 3, {0, 0, 31, 3});
    CHECK(std::ranges::count(out, colour) == std::ssize(out));
  }
}

TEST_CASE("resize: a window equals that part of the whole, a crop ignores pixels outside") {
  const auto in = random_picture(20, 30, 3);
  const ImageView view{in.data(), 20, 30, 90};
  const auto whole = resized(view, 11, 45, {0, 0, 11, 45});
  const auto part = resized(view, 11, 45, {3, 7, 5, 20});
  for (std::size_t y = 0; y < 5; ++y)
    CHECK(std::equal(part.begin() + static_cast<std::ptrdiff_t>(y * 60),
                     part.begin() + static_cast<std::ptrdiff_t>(y * 60 + 60),
                     whole.begin() + static_cast<std::ptrdiff_t>(((y + 3) * 45 + 7) * 3)));

  std::vector<std::uint8_t> alone;
  for (std::size_t y = 4; y < 14; ++y)
    alone.insert(alone.end(), in.begin() + static_cast<std::ptrdiff_t>(y * 90 + 15),
                 in.begin() + static_cast<std::ptrdiff_t>(y * 90 + 15 + 36));
  CHECK(resized(view.crop(4, 5, 10, 12), 8, 8, {0, 0, 8, 8}) ==
        resized({alone.data(), 10, 12, 36}, 8, 8, {0, 0, 8, 8}));
}

TEST_CASE("resize: parts outside the image are refused") {
  const auto in = random_picture(4, 4, 1);
  const ImageView view{in.data(), 4, 4, 12};
  CHECK_THROWS_AS(view.crop(1, 0, 4, 4), std::logic_error);
  CHECK_THROWS_AS(resized(view, 8, 8, {1, 0, 8, 8}), std::logic_error);
}
