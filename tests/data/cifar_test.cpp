#include "data/cifar.h"

#include <doctest/doctest.h>

#include "data/augment.h"
#include "tests/data/image_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// A record whose planes hold brightness, brightness + 1 and brightness + 2, but for its first
// pixel.
std::string record(const std::string& labels, int brightness) {
  std::string bytes = labels;
  for (int c = 0; c < 3; ++c) {
    bytes += static_cast<char>(100 + c);
    bytes += std::string(1023, static_cast<char>(brightness + c));
  }
  return bytes;
}

void write_cifar_10(const TemporaryFolder& folder) {
  for (int batch = 1; batch <= 5; ++batch)
    write_bytes(folder / ("data_batch_" + std::to_string(batch) + ".bin"),
                record({static_cast<char>(batch)}, 10 * batch) + record({'\0'}, 200));
  write_bytes(folder / "test_batch.bin", record({'\11'}, 7));
}

void write_cifar_100(const TemporaryFolder& folder) {
  write_bytes(folder / "train.bin", record({'\1', '\143'}, 1) + record({'\2', '\0'}, 2));
  write_bytes(folder / "test.bin", record({'\3', '\4'}, 3));
}

}  // namespace

TEST_CASE("cifar: the five batches of CIFAR-10 become one set, planes become pixels") {
  const TemporaryFolder folder;
  write_cifar_10(folder);
  const DataSplit data = load_cifar(10, folder.path());
  CHECK(data.train->size() == 10);
  CHECK(data.test->size() == 1);
  CHECK(data.train->classes() == 10);
  CHECK(data.train->image_shape() == Shape{32, 32, 3});
  CHECK(data.description == folder.path().string());
  CHECK(data.augment);
  CHECK(data.loader_threads == 1);
  std::vector<std::uint8_t> pixels(3072);
  CHECK(data.train->read(4, pixels, nullptr) == 3);
  CHECK(pixels ==
        picture(32, 32, 3, [](int y, int x, int c) { return (y == 0 && x == 0 ? 100 : 30) + c; }));
  CHECK(data.test->read(0, pixels, nullptr) == 9);
  CHECK(pixels[3] == 7);
}

TEST_CASE("cifar: CIFAR-100 takes the fine label") {
  const TemporaryFolder folder;
  write_cifar_100(folder);
  const DataSplit data = load_cifar(100, folder.path());
  CHECK(data.train->classes() == 100);
  CHECK(data.train->size() == 2);
  std::vector<std::uint8_t> pixels(3072);
  CHECK(data.train->read(0, pixels, nullptr) == 99);
  CHECK(pixels[5] == 3);
  CHECK(data.test->read(0, pixels, nullptr) == 4);
}

TEST_CASE("cifar: a missing or broken file is named in one sentence") {
  const TemporaryFolder folder;
  write_cifar_10(folder);
  const auto complain = [&](int classes = 10) {
    return message_of<UserError>([&] { load_cifar(classes, folder.path()); });
  };
  const std::string batch = (folder / "data_batch_3.bin").string();
  SUBCASE("a file is missing") {
    std::filesystem::remove(batch);
    CHECK(complain() ==
          folder.path().string() + " has no data_batch_3.bin; `make data` fetches the files");
    CHECK(complain(100).find("has no train.bin") != std::string::npos);
  }
  SUBCASE("a file is cut off") {
    write_bytes(batch, record({'\1'}, 1).substr(0, 3000));
    CHECK(complain() == batch +
                            " is truncated or not of CIFAR-10: its 3000 bytes are not records of "
                            "3073 bytes");
  }
  SUBCASE("a file is empty") {
    write_bytes(batch, "");
    CHECK(complain() == batch + " holds no images");
  }
  SUBCASE("a label is no class") {
    write_bytes(batch, record({'\1'}, 1) + record({'\12'}, 1));
    CHECK(complain() == batch + ": the label of image 1 is 10, not 0 to 9");
  }
  SUBCASE("a folder in place of a file") {
    std::filesystem::remove(batch);
    std::filesystem::create_directory(batch);
    CHECK(complain() == batch + " is not a regular file");
  }
  SUBCASE("a fine label is no class") {
    write_bytes(folder / "train.bin", record({'\1', '\144'}, 1));
    CHECK(complain(100).ends_with("the label of image 0 is 100, not 0 to 99"));
  }
  SUBCASE("the folder is missing") {
    CHECK(message_of<UserError>([&] {
            open_cifar(10, folder / "none");
          }).ends_with("does not exist; `make data` creates datasets/cifar-10"));
  }
}

TEST_CASE("cifar: the PNG form is converted to the binary form") {
  const TemporaryFolder folder;
  write_image(
      folder / "images.png",
      picture(2, 1024, 3, [](int y, int x, int c) { return x == 0 ? 100 + c : 10 * y + c; }), 2,
      1024);
  write_bytes(folder / "labels.json", "[9, 3, 5]");
  const auto convert = [&](const std::string& first) {
    return run_program("cifar_from_png",
                       {folder / "images.png", folder / "labels.json", first, folder / "out.bin"});
  };
  CHECK(convert("1").status == 0);
  CHECK(read_bytes(folder / "out.bin") == record({'\3'}, 0) + record({'\5'}, 10));
  CHECK(convert("2").status == 2);
  CHECK(convert("2").err.find("has no labels 2 to 3") != std::string::npos);
  CHECK(convert("x").err.find("usage") != std::string::npos);
}
