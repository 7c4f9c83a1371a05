#include "data/image_folder.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>

#include "data/loader.h"
#include "tests/data/image_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace fs = std::filesystem;

namespace {

// Two classes, four images each to train and one to test, in many sizes and forms.
void write_set(const TemporaryFolder& folder) {
  std::uint64_t seed = 0;
  for (const char* name :
       {"train/cat/a.jpg", "train/cat/b.JPEG", "train/cat/c.png", "train/cat/d.PNG",
        "train/dog/a.jpeg", "train/dog/b.jpg", "train/dog/c.JPG", "train/dog/d.png",
        "val/cat/a.jpg", "val/dog/a.png"}) {
    const auto height = static_cast<std::int64_t>(20 + 7 * seed), width = std::int64_t{50};
    write_image(folder / name, random_picture(height, width, seed), height, width);
    ++seed;
  }
  write_bytes(folder / "train/cat/notes.txt", "not an image");
  write_bytes(folder / "train/cat/._a.jpg", "not an image either");
}

const ImageFolderOptions kSmall{.image_size = 16};

std::vector<std::uint8_t> read(const Dataset& set, std::int64_t index, std::int32_t label,
                               Random* random = nullptr) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.image_shape().count()));
  CHECK(set.read(index, pixels, random) == label);
  return pixels;
}

std::string complaint(const TemporaryFolder& folder, const ImageFolderOptions& options = kSmall) {
  const std::string message =
      message_of<UserError>([&] { open_image_folder(folder.path().string(), options); });
  const auto at = message.find(folder.path().string());
  REQUIRE(at != std::string::npos);
  return message.substr(0, at) + "DIR" + message.substr(at + folder.path().string().size());
}

}  // namespace

TEST_CASE("image folder: classes and files are sorted, other files are ignored") {
  const TemporaryFolder folder;
  write_set(folder);
  const DataSplit data = open_image_folder(folder.path().string(), {});
  CHECK(data.train->size() == 8);
  CHECK(data.test->size() == 2);
  CHECK(data.train->classes() == 2);
  CHECK(data.train->image_shape() == Shape{224, 224, 3});
  CHECK(data.description == folder.path().string() + " (2 classes)");
  CHECK(data.loader_threads >= 1);
  CHECK(!data.skipped);
  read(*data.train, 3, 0);
  read(*data.train, 4, 1);
  read(*data.test, 1, 1);
}

TEST_CASE("image folder: testing takes the centre of the image, its short side scaled by 256/224") {
  const TemporaryFolder folder;
  write_set(folder);
  const auto picture = random_picture(64, 96, 9);
  write_image(folder / "val/cat/a.jpg", random_picture(8, 8, 1), 8, 8);
  write_image(folder / "val/cat/b.png", picture, 64, 96);
  const DataSplit data = open_image_folder(folder.path().string(), {.image_size = 56});
  std::vector<std::uint8_t> middle;  // 64·224/256 = 56: nothing is scaled
  for (std::size_t y = 4; y < 60; ++y)
    middle.insert(middle.end(), picture.begin() + static_cast<std::ptrdiff_t>((y * 96 + 20) * 3),
                  picture.begin() + static_cast<std::ptrdiff_t>((y * 96 + 76) * 3));
  CHECK(read(*data.test, 1, 0) == middle);
}

TEST_CASE("image folder: training takes parts that depend only on the random numbers") {
  const TemporaryFolder folder;
  write_set(folder);
  const DataSplit data = open_image_folder(folder.path().string(), kSmall);
  Random one(1), same(1), other(2);
  const auto pixels = read(*data.train, 2, 0, &one);
  CHECK(read(*data.train, 2, 0, &same) == pixels);
  CHECK(read(*data.train, 2, 0, &other) != pixels);
}

TEST_CASE("image folder: random parts have the right areas, ratios and positions") {
  Random random(1);
  double area_sum = 0, log_ratio_sum = 0;
  for (int i = 0; i < 2000; ++i) {
    const Window part = random_part(400, 400, random);
    REQUIRE(part.top >= 0);
    REQUIRE(part.left >= 0);
    REQUIRE(part.top + part.height <= 400);
    REQUIRE(part.left + part.width <= 400);
    const double area = static_cast<double>(part.height * part.width) / (400 * 400);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    REQUIRE(area > 0.078);
    REQUIRE(ratio > 0.74);
    REQUIRE(ratio < 1.35);
    area_sum += area;
    log_ratio_sum += std::log(ratio);
  }
  CHECK(area_sum / 2000 == doctest::Approx(0.51).epsilon(0.05));  // large ones fit less often
  CHECK(std::abs(log_ratio_sum / 2000) < 0.02);
}

TEST_CASE("image folder: if no part fits, the centre is taken") {
  Random random(1);
  const Window wide = random_part(3, 3000, random), high = random_part(3000, 3, random);
  CHECK(wide.height == 3);
  CHECK(wide.width == 4);
  CHECK(wide.left == 1498);
  CHECK(high.height == 4);
  CHECK(high.top == 1498);
  const Window dot = random_part(1, 1, random);
  CHECK(dot.height == 1);
  CHECK(dot.width == 1);
}

TEST_CASE("image folder: a missing or empty folder is named in one sentence") {
  const TemporaryFolder folder;
  write_set(folder);
  const std::string expected =
      " does not exist; images are expected in train/CLASS/*.jpg and val/CLASS/*.jpg (or .jpeg, "
      ".png)";
  SUBCASE("no val") {
    fs::remove_all(folder / "val");
    CHECK(complaint(folder) == "the folder of the test images DIR/val" + expected);
  }
  SUBCASE("no train") {
    fs::remove_all(folder / "train");
    CHECK(complaint(folder) == "the folder of the training images DIR/train" + expected);
  }
  SUBCASE("nothing at all") {
    fs::remove_all(folder.path());
    CHECK(complaint(folder) == "the data folder DIR" + expected);
  }
  SUBCASE("a file in place of a folder") {
    fs::remove_all(folder / "val");
    write_bytes(folder / "val", "x");
    CHECK(complaint(folder) == "DIR/val is not a folder");
  }
  SUBCASE("a class without images") {
    fs::create_directory(folder / "train/bee");
    CHECK(complaint(folder) == "the folder DIR/train/bee has no images (.jpg, .jpeg or .png)");
  }
  SUBCASE("a class only to test") {
    fs::create_directory(folder / "val/bee");
    CHECK(complaint(folder) == "DIR/val/bee is a class that the training set does not have");
  }
  SUBCASE("no classes") {
    fs::remove_all(folder / "val/cat");
    fs::remove_all(folder / "val/dog");
    CHECK(complaint(folder) == "DIR/val has no class folders with images");
  }
  SUBCASE("a folder that may not be read") {
    if (geteuid() == 0) return;  // root may read everything
    fs::permissions(folder / "train/cat", fs::perms::none);
    CHECK(complaint(folder) == "cannot read the folder DIR/train/cat: Permission denied");
    fs::permissions(folder / "train/cat", fs::perms::owner_all);
  }
}

TEST_CASE("image folder: files that are not used are counted, and one of them is named") {
  const TemporaryFolder folder;
  write_set(folder);
  fs::remove(folder / "train/cat/notes.txt");
  for (const char* name : {"train/.DS_Store", "train/cat/Thumbs.db", "train/.hidden/a.webp"}) {
    fs::create_directories((folder / name).parent_path());
    write_bytes(folder / name, "x");
  }
  CHECK(open_image_folder(folder.path().string(), kSmall).left_out.empty());

  for (const char* name :
       {"train/cat/b.webp", "train/dog/c.WEBP", "train/dog/c.gif", "train/dog/README",
        "train/dog/more/a.jpg", "train/dog/more/still/b.jpg", "train/dog/more/.DS_Store",
        "train/labels.csv", "train/dog/d.bmp", "train/dog/e.tif", "val/cat/deeper.jpg/a.jpg"}) {
    fs::create_directories((folder / name).parent_path());
    write_bytes(folder / name, "x");
  }
  const DataSplit data = open_image_folder(folder.path().string(), kSmall);
  CHECK(data.train->size() == 8);
  REQUIRE(data.left_out.size() == 2);
  CHECK(
      data.left_out[0] ==
      (folder / "train").string() +
          ": 9 files left out: 2 *.webp, 1 without an extension, 1 *.bmp, 1 *.csv, 2 others, 2 in "
          "sub-folders, such as cat/b.webp");
  CHECK(data.left_out[1] ==
        (folder / "val").string() +
            ": 1 file left out: 1 in sub-folders, such as cat/deeper.jpg/a.jpg");
}

TEST_CASE("image folder: a broken image ends the run, or the next good one takes its place") {
  const TemporaryFolder folder;
  write_set(folder);
  const std::string whole = read_bytes(folder / "train/cat/a.jpg");
  write_bytes(folder / "train/cat/b.JPEG", whole.substr(0, whole.size() / 2));
  write_bytes(folder / "train/cat/c.png", "");
  write_bytes(folder / "train/dog/d.png", "x");

  const DataSplit strict = open_image_folder(folder.path().string(), kSmall);
  std::vector<std::uint8_t> pixels(16 * 16 * 3);
  CHECK(message_of<UserError>([&] { strict.train->read(2, pixels, nullptr); }) ==
        (folder / "train/cat/c.png").string() +
            " is not a JPEG or PNG image that can be decoded: it is empty");

  const DataSplit data =
      open_image_folder(folder.path().string(), {.image_size = 16, .skip_bad_images = true});
  CHECK(data.train->size() == 8);
  REQUIRE(data.skipped);
  CHECK(data.skipped->all().empty());
  const auto train = [&](std::int64_t index) {
    Random random(1);
    return read(*data.train, index, 0, &random);
  };
  CHECK(train(1) == train(3));
  CHECK(train(2) == train(3));
  CHECK(train(7) == train(0));  // behind the last comes the first
  train(7);
  CHECK(data.skipped->all().size() == 3);
  CHECK(data.skipped->all().begin()->starts_with((folder / "train/cat/b.JPEG").string()));

  for (const char* name : {"train/cat/a.jpg", "train/cat/d.PNG", "train/dog/a.jpeg",
                           "train/dog/b.jpg", "train/dog/c.JPG", "val/cat/a.jpg"})
    write_bytes(folder / name, "x");
  Random random(1);
  CHECK(message_of<UserError>([&] { data.train->read(0, pixels, &random); }) ==
        "none of the 8 images in " + (folder / "train").string() + " can be decoded");

  // A test has no use for another image.
  CHECK(read(*data.test, 0, Dataset::kLeftOut) == std::vector<std::uint8_t>(16 * 16 * 3, 0));
  read(*data.test, 1, 1);
  CHECK(data.skipped->all().size() == 9);
}

TEST_CASE("image folder: batches depend neither on the threads nor on the workers") {
  const TemporaryFolder folder;
  write_set(folder);
  write_bytes(folder / "train/dog/b.jpg", "broken");
  const DataSplit data =
      open_image_folder(folder.path().string(), {.image_size = 16, .skip_bad_images = true});
  // Three epochs of two batches of four; the values of each batch, by rank, one behind the other.
  const auto take = [&](std::int64_t workers, int threads) {
    std::vector<std::vector<float>> batches(6);
    for (std::int64_t rank = 0; rank < workers; ++rank) {
      Loader loader(data.train, data.normalisation, cpu_device(),
                    {.batch = 4,
                     .training = true,
                     .seed = 3,
                     .workers = workers,
                     .rank = rank,
                     .threads = threads});
      for (auto& values : batches)
        for (const float v : loader.next().images.to_host<float>()) values.push_back(v);
    }
    return batches;
  };
  const auto expected = take(1, 1);
  CHECK(take(1, 3) == expected);
  CHECK(take(4, 1) == expected);
  CHECK(take(4, 2) == expected);
  CHECK(expected[0] != expected[2]);
}
