#include "data/augment.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/data/image_files.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Shape kShape{6, 5, 3};

// A crop of the padded image, by the definition.
std::vector<std::uint8_t> padded_crop(const std::vector<std::uint8_t>& in, int pad, int top,
                                      int left, bool flip) {
  return picture(6, 5, 3, [&](int y, int x, int c) {
    const int from_y = y + top - pad, from_x = (flip ? 4 - x : x) + left - pad;
    const bool inside = from_y >= 0 && from_y < 6 && from_x >= 0 && from_x < 5;
    return inside ? int{in[static_cast<std::size_t>((from_y * 5 + from_x) * 3 + c)]} : 0;
  });
}

}  // namespace

TEST_CASE("augment: flipping mirrors the image, and flipping twice restores it") {
  auto pixels = picture(2, 3, 2, [](int y, int x, int c) { return 100 * y + 10 * x + c; });
  const auto before = pixels;
  flip_horizontally(pixels, {2, 3, 2});
  CHECK(pixels == picture(2, 3, 2, [](int y, int x, int c) { return 100 * y + 10 * (2 - x) + c; }));
  flip_horizontally(pixels, {2, 3, 2});
  CHECK(pixels == before);
}

TEST_CASE("augment: pad, crop and flip gives every crop of the padded image, flipped or not") {
  for (const int pad : {0, 1, 7}) {  // 7: the image may be gone altogether
    const auto in = random_picture(6, 5, 1);
    std::vector<std::vector<std::uint8_t>> possible;
    for (int top = 0; top <= 2 * pad; ++top)
      for (int left = 0; left <= 2 * pad; ++left)
        for (const bool flip : {false, true})
          possible.push_back(padded_crop(in, pad, top, left, flip));
    const Augment augment = pad_crop_flip(pad);
    Random random(5);
    std::set<std::ptrdiff_t> seen;
    for (int i = 0; i < 300; ++i) {
      auto out = in;
      augment(out, kShape, random);
      const auto found = std::ranges::find(possible, out);
      CHECK(found != possible.end());
      seen.insert(found - possible.begin());
    }
    if (pad < 7) CHECK(seen.size() == possible.size());
  }
}

TEST_CASE("augment: the result depends only on the random numbers") {
  const auto in = random_picture(6, 5, 2);
  auto one = in, two = in;
  Random first = Random(1).split(3), second = Random(1).split(3);
  pad_crop_flip()(one, kShape, first);
  pad_crop_flip()(two, kShape, second);
  CHECK(one == two);
}
