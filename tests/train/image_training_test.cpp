// Training on photographs that are decoded on demand, end to end.
#include <doctest/doctest.h>

#include "data/image_folder.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/data/image_files.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::unique_ptr<Layer> linear_net(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  auto model = std::make_unique<Sequential>();
  model->add<Flatten>("flatten").add<Linear>("0", image.count(), classes, Init::he_normal,
                                             Random(seed, Purpose::weights));
  return model;
}

}  // namespace

TEST_CASE("training on images: broken ones are skipped and reported, for any number of workers") {
  const TemporaryFolder folder;
  for (const char* half : {"train", "val"})
    for (const int i : {0, 1, 2, 3, 4, 5, 6, 7})
      write_image(folder / fmt::format("{}/{}/{}.png", half, i % 2 ? "odd" : "even", i),
                  random_picture(20 + i, 24, static_cast<std::uint64_t>(i)), 20 + i, 24);
  write_bytes(folder / "train/odd/3.png", "broken");
  write_bytes(folder / "val/even/6.png", "broken");
  const auto task = [&](bool skip) {
    return Task{.app = "test", .model = linear_net, .data = [&folder, skip] {
                  return open_image_folder(folder.path().string(),
                                           {.image_size = 16, .skip_bad_images = skip});
                }};
  };
  TrainOptions o;
  o.batch = 4;
  o.iterations = 6;
  o.threads = 1;
  o.quiet = true;
  o.lr = 0.001;
  CHECK(message_of<UserError>([&] { train(task(false), o); }).find("3.png") != std::string::npos);

  const Summary one = train(task(true), o);
  CHECK(one.skipped.size() == 2);
  CHECK(one.skipped.begin()->starts_with((folder / "train/odd/3.png").string()));
  CHECK(to_text(one).find("2 broken images were skipped") != std::string::npos);
  const auto json = json_of(to_json(one));
  CHECK(json["skipped_images"]["count"] == 2);
  CHECK(json["skipped_images"]["first"].size() == 2);
  CHECK(json["breakdown_ms"].contains("data"));  // how long training waited for images
  CHECK(to_text(one).find(" data ") != std::string::npos);

  // A test is as if the broken image were not there.
  const TemporaryFolder whole;
  std::filesystem::copy(folder.path(), whole.path(), std::filesystem::copy_options::recursive);
  std::filesystem::remove(whole / "val/even/6.png");
  const Task without{.app = "test", .model = linear_net, .data = [&whole] {
                       return open_image_folder(whole.path().string(),
                                                {.image_size = 16, .skip_bad_images = true});
                     }};
  const Summary expected = train(without, o);
  CHECK(expected.skipped.size() == 1);
  CHECK(one.test_accuracy == expected.test_accuracy);
  CHECK(one.test_accuracy > 0);
  CHECK(one.test_accuracy < 1);

  o.workers = 2;
  for (const char* algo : {"d-sync", "ps-sync"}) {
    o.algo = algo;
    const Summary two = train(task(true), o);
    CHECK(two.skipped == one.skipped);
    CHECK(two.test_accuracy == one.test_accuracy);
  }

  for (const int i : {0, 1, 2, 3, 4, 5, 6, 7})
    write_bytes(folder / fmt::format("val/{}/{}.png", i % 2 ? "odd" : "even", i), "broken");
  CHECK(message_of<UserError>([&] { train(task(true), o); }) ==
        "none of the test images can be decoded, so nothing can be tested");
}
