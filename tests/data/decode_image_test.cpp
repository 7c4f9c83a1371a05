#include "data/decode_image.h"

#include <doctest/doctest.h>

#include "tests/data/image_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<std::uint8_t> pixels_of(const Image& image) {
  return {image.pixels.get(), image.pixels.get() + 3 * image.height * image.width};
}

// What is said about a file of these bytes, after its name.
std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.jpg", bytes);
  const std::string message = message_of<UserError>([&] { decode_image(folder / "a.jpg"); });
  const std::string name = (folder / "a.jpg").string();
  REQUIRE(message.starts_with(name));
  return message.substr(name.size());
}

}  // namespace

TEST_CASE("decode: PNG comes back as it was; grey becomes RGB, transparency is dropped") {
  const TemporaryFolder folder;
  const auto rgb = random_picture(5, 7, 1);
  write_image(folder / "rgb.png", rgb, 5, 7);
  const Image image = decode_image(folder / "rgb.png");
  CHECK(image.height == 5);
  CHECK(image.width == 7);
  CHECK(pixels_of(image) == rgb);

  const auto grey = picture(2, 3, 1, [](int y, int x, int) { return 10 * y + x; });
  write_image(folder / "grey.png", grey, 2, 3, 1);
  CHECK(pixels_of(decode_image(folder / "grey.png")) ==
        picture(2, 3, 3, [](int y, int x, int) { return 10 * y + x; }));

  const auto rgba = picture(2, 3, 4, [](int y, int x, int c) { return 50 * c + 10 * y + x; });
  write_image(folder / "rgba.png", rgba, 2, 3, 4);
  CHECK(pixels_of(decode_image(folder / "rgba.png")) ==
        picture(2, 3, 3, [](int y, int x, int c) { return 50 * c + 10 * y + x; }));
}

TEST_CASE("decode: JPEG comes back nearly as it was, whatever its name says") {
  const TemporaryFolder folder;
  const auto smooth = picture(16, 24, 3, [](int y, int x, int c) { return 8 * y + 4 * x + 9 * c; });
  write_image(folder / "a.jpg", smooth, 16, 24);
  std::filesystem::rename(folder / "a.jpg", folder / "a.png");
  const Image image = decode_image(folder / "a.png");
  for (std::size_t i = 0; i < smooth.size(); ++i)
    CHECK(std::abs(image.pixels[i] - smooth[i]) <= 12);
  const auto grey = picture(8, 8, 1, [](int y, int, int) { return 20 * y; });
  write_image(folder / "grey.jpg", grey, 8, 8, 1);
  const Image from_grey = decode_image(folder / "grey.jpg");
  CHECK(from_grey.pixels[0] == from_grey.pixels[2]);
}

TEST_CASE("decode: what is broken is named in one sentence") {
  const TemporaryFolder folder;
  const auto pixels = random_picture(40, 40, 1);
  write_image(folder / "a.jpg", pixels, 40, 40);
  write_image(folder / "a.png", pixels, 40, 40);
  const std::string cannot = " is not a JPEG or PNG image that can be decoded: ";
  CHECK(complaint("") == cannot + "it is empty");
  CHECK(complaint("hello world").starts_with(cannot));
  CHECK(complaint("GIF89a" + std::string(100, 'x')).starts_with(cannot));
  for (const char* name : {"a.jpg", "a.png"}) {
    const std::string whole = read_bytes(folder / name);
    for (const std::size_t size : {std::size_t{8}, whole.size() / 2, whole.size() - 40})
      CHECK(complaint(whole.substr(0, size)).starts_with(cannot));
  }
  std::string huge = read_bytes(folder / "a.png");
  huge.replace(16, 8, std::string("\0\0\x40\0\0\0\x42\x68", 8));  // width and height
  CHECK(complaint(huge) == " is an image of 16384x17000 pixels, which cannot be used");
  CHECK(message_of<UserError>([&] {
          decode_image(folder / "none.jpg");
        }).ends_with("No such file or directory"));
  CHECK(
      message_of<UserError>([&] { decode_image(folder.path()); }).ends_with("not a regular file"));
}
