// Fingerprints distinguish data sets (Dataset::fingerprint).
#include <doctest/doctest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/image_folder.h"
#include "data/synthetic.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("fingerprint: of a set in memory depends on its labels and pixels") {
  const Shape shape{2, 2, 1};
  const std::vector<std::uint8_t> pixels(400, 7), labels(100, 3);
  const auto of = [&](const std::vector<std::uint8_t>& p, const std::vector<std::uint8_t>& l) {
    return InMemoryDataset(shape, 10, p, l).fingerprint();
  };
  const std::uint64_t expected = of(pixels, labels);
  CHECK(of(pixels, labels) == expected);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    auto other = labels;
    other[i] = 4;
    CHECK(of(pixels, other) != expected);
  }
  CHECK(of(std::vector<std::uint8_t>(400, 8), labels) != expected);
}

TEST_CASE("fingerprint: of an image folder depends on what is in it, not on where it is") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& image) {
    for (const char* half : {"train", "val"}) {
      std::filesystem::create_directories(folder / name / half / "cat");
      write_bytes(folder / name / half / "cat" / image, "not even an image");  // it is not decoded
    }
  };
  const auto of = [&](const std::string& name) {
    return open_image_folder(folder / name, {}).train->fingerprint();
  };
  write("a", "1.png");
  write("b", "1.png");
  CHECK(of("a") == of("b"));
  write_bytes(folder / "b" / "train" / "cat" / "1.png", "something longer than that");
  CHECK(of("a") != of("b"));
  write("c", "2.png");
  CHECK(of("a") != of("c"));
  CHECK(synthetic_imagenet(32).train->fingerprint() == synthetic_imagenet(32).train->fingerprint());
}
