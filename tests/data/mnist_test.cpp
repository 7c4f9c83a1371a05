
#include <doctest/doctest.h>

#include "data/mnist.h"
#include "tests/data/idx_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// What read_idx says about a file of these bytes.
std::string complaint(const std::string& bytes, int rank, bool gzip = false) {
  const TemporaryFolder folder;
  write_bytes(folder / "file", bytes, gzip);
  std::string message = message_of<UserError>([&] { read_idx(folder / "file", rank); });
  const auto at = message.find((folder / "file").string());
  CHECK(at == 0);
  return at == 0 ? message.substr((folder / "file").string().size()) : message;
}

}  // namespace

TEST_CASE("idx: plain and gzip files give their sizes and bytes") {
  const TemporaryFolder folder;
  for (const bool gzip : {false, true}) {
    write_bytes(folder / "file", idx({2, 1, 3}, "abcdef"), gzip);
    const IdxFile file = read_idx(folder / "file", 3);
    CHECK(file.sizes == std::vector<std::int64_t>{2, 1, 3});
    CHECK(std::string(file.bytes.begin(), file.bytes.end()) == "abcdef");
  }
}

TEST_CASE("idx: broken files are refused in one sentence that names the file") {
  const std::string good = idx({2, 3}, "abcdef");
  for (const bool gzip : {false, true}) {
    CHECK(complaint(good.substr(0, 3), 2, gzip) == " is truncated: 1 more bytes were expected");
    CHECK(complaint(good.substr(0, 10), 2, gzip) == " is truncated: 2 more bytes were expected");
    CHECK(complaint(good + "x", 2, gzip) == " is longer than its header says");
    CHECK(complaint(good, 3, gzip) ==
          " is not an IDX file of bytes with 3 dimensions: its magic number is 00000802, not "
          "00000803");
    CHECK(complaint("hello world", 2, gzip).starts_with(" is not an IDX file"));
    CHECK(complaint("", 2, gzip) == " is truncated: 4 more bytes were expected");
  }
  CHECK(complaint(good.substr(0, good.size() - 2), 2) ==
        " is truncated: 2 more bytes were expected");
}

TEST_CASE("idx: sizes are checked before memory is allocated") {
  // 2^96 bytes, 2^64 bytes (which would wrap to 0), and 16 GB.
  for (const std::vector<std::uint32_t>& sizes :
       {std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff},
        std::vector<std::uint32_t>{0x80000000, 0x80000000, 4},
        std::vector<std::uint32_t>{0x10000, 0x10000, 4}})
    for (const bool gzip : {false, true})
      CHECK(complaint(idx(sizes, "abc"), 3, gzip).starts_with(" claims more than 4294967296"));
  // 1 GB: possible, but not there.
  const std::vector<std::uint32_t> sizes = {0x8000, 0x8000};
  CHECK(complaint(idx(sizes, "abc"), 2).starts_with(" is truncated: its header says 1073741824"));
  CHECK(complaint(idx(sizes, "abc"), 2, true) ==
        " is truncated: 1073741821 more bytes were expected");
}

TEST_CASE("idx: damaged gzip files are refused") {
  const TemporaryFolder folder;
  write_bytes(folder / "whole", idx({1000}, std::string(1000, 'x')), true);
  const std::string whole = read_bytes(folder / "whole");
  CHECK(complaint(whole.substr(0, whole.size() / 2), 1).starts_with(" is truncated"));
  CHECK(complaint(whole.substr(0, whole.size() - 4), 1).starts_with(" is truncated"));
  std::string wrong_sum = whole;
  wrong_sum[whole.size() - 6] ^= 1;
  CHECK(complaint(wrong_sum, 1).starts_with(" is damaged"));
}

TEST_CASE("idx: a missing or non-regular file is refused, not waited for") {
  const TemporaryFolder folder;
  CHECK(message_of<UserError>([&] {
          read_idx(folder / "none", 1);
        }).ends_with("No such file or directory"));
  CHECK(message_of<UserError>([&] {
          read_idx(folder.path(), 1);
        }).ends_with("is not a regular file"));
}

TEST_CASE("mnist: four files make a split; plain and gzip may be mixed") {
  const TemporaryFolder folder;
  write_mnist(folder.path(), 6, 4);
  std::filesystem::remove(folder / "t10k-images-idx3-ubyte");
  write_bytes(folder / "t10k-images-idx3-ubyte.gz", idx({4, 28, 28}, std::string(4 * 784, '\x7f')),
              true);
  const DataSplit data = load_mnist(folder.path());
  CHECK(data.train->size() == 6);
  CHECK(data.test->size() == 4);
  CHECK(data.train->image_shape() == Shape{28, 28, 1});
  CHECK(data.train->classes() == 10);
  std::vector<std::uint8_t> pixels(784);
  CHECK(data.test->read(3, pixels, nullptr) == 3);
  CHECK(pixels[0] == 0x7f);
  CHECK_THROWS_AS(data.test->read(4, pixels, nullptr), std::logic_error);
}

TEST_CASE("mnist: files that do not fit each other are refused") {
  const TemporaryFolder folder;
  const auto complain = [&] { return message_of<UserError>([&] { load_mnist(folder.path()); }); };
  write_mnist(folder.path(), 6, 4);
  const auto labels = folder / "train-labels-idx1-ubyte",
             images = folder / "train-images-idx3-ubyte";
  SUBCASE("fewer labels than images") {
    write_bytes(labels, idx({5}, std::string(5, '\0')));
    CHECK(complain().find("holds 6 images, but") != std::string::npos);
  }
  SUBCASE("a label that is no digit") {
    write_bytes(labels, idx({6}, std::string("\1\2\3\12\4\5", 6)));
    CHECK(complain().ends_with("label 3 is 10, not 0 to 9"));
  }
  SUBCASE("images of another size") {
    write_bytes(images, idx({6, 2, 2}, std::string(24, 'x')));
    CHECK(complain().ends_with("holds images of 2x2 pixels, not 28x28"));
  }
  SUBCASE("no images") {
    write_bytes(images, idx({0, 28, 28}, ""));
    write_bytes(labels, idx({0}, ""));
    CHECK(complain().ends_with("holds no images"));
  }
  SUBCASE("a file is missing") {
    std::filesystem::remove(labels);
    CHECK(complain().find("has no train-labels-idx1-ubyte (nor") != std::string::npos);
  }
  SUBCASE("the folder is missing") { CHECK_THROWS_AS(open_mnist(folder / "none"), UserError); }
}
