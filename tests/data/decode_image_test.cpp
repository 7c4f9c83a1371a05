#include "data/decode_image.h"

#include <doctest/doctest.h>

#include "tests/data/image_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Image decoded(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", bytes);
  return decode_image(folder / "a");
}

std::vector<std::uint8_t> pixels_of(const Image& image) {
  return {image.pixels.get(), image.pixels.get() + 3 * image.height * image.width};
}

const std::string cannot = " is not a JPEG or PNG image that can be decoded: ";

// What is said about a file of these bytes, after its name.
std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.jpg", bytes);
  const std::string message = message_of<UserError>([&] { decode_image(folder / "a.jpg"); });
  if (message.empty()) return "";
  const std::string name = (folder / "a.jpg").string();
  REQUIRE(message.starts_with(name));
  return message.substr(name.size());
}

}  // namespace

TEST_CASE("decode: PNG is lossless; grey becomes RGB, transparency is dropped") {
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

TEST_CASE("decode: JPEG is nearly lossless, whatever the file's name") {
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

TEST_CASE("decode: a broken file is named in one sentence") {
  const TemporaryFolder folder;
  const auto pixels = random_picture(40, 40, 1);
  write_image(folder / "a.jpg", pixels, 40, 40);
  write_image(folder / "a.png", pixels, 40, 40);
  CHECK(complaint("") == cannot + "it is empty");
  CHECK(complaint("hello world").starts_with(cannot));
  CHECK(complaint("GIF89a" + std::string(100, 'x')).starts_with(cannot));
  for (const char* name : {"a.jpg", "a.png"}) {
    const std::string whole = read_bytes(folder / name);
    for (const std::size_t size : {std::size_t{8}, whole.size() / 2, whole.size() - 40})
      CHECK(complaint(whole.substr(0, size)).starts_with(cannot));
  }
  CHECK(message_of<UserError>([&] {
          decode_image(folder / "none.jpg");
        }).ends_with("No such file or directory"));
  CHECK(
      message_of<UserError>([&] { decode_image(folder.path()); }).ends_with("not a regular file"));
}

TEST_CASE("decode: an image with too many pixels is refused, and the limit can be raised") {
  const std::string too_many = png_file({.width = 8001, .height = 8000}, "");
  CHECK(complaint(too_many) ==
        " has 8001x8000 pixels, more than the limit of 64000000 (see --max-pixels)");
  std::string jpeg = jpeg_file({.colours = {1, 2, 3}});
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xff\xff\xff\xff");  // height and width
  CHECK(complaint(jpeg) ==
        " has 65535x65535 pixels, more than the limit of 64000000 (see --max-pixels)");

  const TemporaryFolder folder;
  write_image(folder / "a.png", random_picture(4, 5, 1), 4, 5);
  CHECK(message_of<UserError>([&] {
          decode_image(folder / "a.png", 19);
        }).ends_with("a.png has 5x4 pixels, more than the limit of 19 (see --max-pixels)"));
  CHECK(decode_image(folder / "a.png", 20).width == 5);
}

TEST_CASE("decode: an image's memory is limited by its pixels") {
  const std::string zeros(8 << 20, '\0');
  CHECK(complaint(png_file({.width = 10, .height = 10}, zeros)) ==
        cannot + "decoding takes too much memory for 10x10 pixels");
  // The forms that take most are not refused.
  for (const int type : {0, 2, 4, 6})
    for (const bool interlaced : {false, true})
      for (const auto& [width, height] : {std::pair{300U, 200U}, {1U, 900U}, {900U, 1U}}) {
        const PngHeader header{width, height, 16, type, interlaced};
        const Image image = decoded(png_file(header, zeros.substr(0, 600'000)));
        CHECK(image.width == width);
        CHECK(image.pixels[0] == 0);
      }
}

TEST_CASE("decode: a wrong checksum in a PNG is an error") {
  const std::string good = png_file({.width = 2, .height = 2}, std::string(14, '\0'));
  CHECK(pixels_of(decoded(good)) == std::vector<std::uint8_t>(12, 0));
  // In the sum of the header, in the pixels, in the sum of the end.
  for (const std::size_t at : {std::size_t{30}, good.find("IDAT") + 5, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    CHECK(complaint(bad) == cannot + "one of its checksums is wrong");
  }
  CHECK(complaint(png_signature() + png_chunk("IDAT", "") + good.substr(8)) ==
        cannot + "it does not begin with a PNG header");
  std::string unknown = good;
  unknown.insert(unknown.find("IDAT") - 4, png_chunk("NEWS", "x"));
  CHECK(complaint(unknown) == cannot + "it has an unknown critical chunk");
  std::string comment = good;
  comment.insert(comment.find("IDAT") - 4, png_chunk("tEXt", "x"));
  CHECK(decoded(comment).height == 2);
}

TEST_CASE("decode: JPEG tables that would overflow stb_image's, or are missing, are refused") {
  const std::vector<int> grey{77};
  CHECK(decoded(jpeg_file({.colours = grey})).pixels[0] == 77);
  const auto tables = [&](const std::string& more) {
    return complaint(jpeg_file({.colours = grey, .tables = more + FlatJpeg::huffman()}));
  };
  const std::string broken = cannot + "one of its Huffman tables is broken";
  const std::string long_codes = std::string(8, '\0').append(8, '\x40');  // 8 times 64
  CHECK(tables(huffman_table(0, long_codes, std::string(512, 'v'))) == broken);
  CHECK(tables(huffman_table(1, std::string(16, '\xff'), std::string(4080, 'v'))) == broken);
  CHECK(tables(huffman_table(0, std::string(3, '\x01'), "vv")) == broken);  // a value is missing
  CHECK(tables(huffman_table(2, std::string(1, '\x01'), "v")) == broken);   // there are two kinds
  CHECK(tables(jpeg_segment(0xc4, std::string(16, '\0'))) == broken);
  CHECK(complaint(jpeg_file({.colours = grey, .tables = ""})) ==
        cannot + "it uses a Huffman table that it does not define");
  CHECK(complaint(jpeg_file({.colours = {1, 2, 3}, .scanned = 2})) ==
        cannot + "it lacks the data of a colour");
  CHECK(tables(jpeg_segment(0xc9, "")) == cannot + "its kind of JPEG is not supported");
  CHECK(tables(jpeg_segment(0xfe, "a comment")) == "");
}

TEST_CASE("decode: CMYK is correct with and without Adobe's marker") {
  // Stored inverted: (204, 102, 51) of cyan, magenta and yellow are left, times 153/255 for black.
  const std::vector<int> cmyk{204, 102, 51, 153};
  std::vector<std::uint8_t> expected;
  for (int i = 0; i < 64; ++i) expected.insert(expected.end(), {122, 61, 31});
  CHECK(pixels_of(decoded(jpeg_file({.colours = cmyk, .adobe = 0}))) == expected);
  CHECK(pixels_of(decoded(jpeg_file({.colours = cmyk}))) == expected);
  // As luminance and chrominance: no colour, so all three are 255 - 204.
  for (const int transform : {1, 2}) {
    const auto pixels =
        pixels_of(decoded(jpeg_file({.colours = {204, 128, 128, 153}, .adobe = transform})));
    CHECK(pixels == std::vector<std::uint8_t>(192, 31));
  }
}
