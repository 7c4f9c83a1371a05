#include "train/prediction.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "data/image_files.h"
#include "tests/data/image_files.h"
#include "tests/json.h"
#include "tests/support.h"
#include "tests/train/digits.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("prediction: a trained net names the digits in image files") {
  const TemporaryFolder folder;
  const ProgramResult trained =
      run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "60", "--quiet", "--save",
                                folder / "weights.safetensors"});
  REQUIRE(trained.status == 0);
  std::vector<std::string> words = {"--data", "synthetic", "--load", folder / "weights.safetensors",
                                    "--json", "--predict"};
  const auto set = synthetic_digits(20, 99);
  std::vector<int> labels;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::uint8_t> pixels(784);
    labels.push_back(set->read(i, pixels, nullptr));
    // Grey and colour, PNG and JPEG, larger than the net's images and not square.
    const bool wide = i % 2 == 1;
    const auto at = [&](int y, int x, int) -> int {
      const int column = wide ? x / 3 - 14 : x;
      const int row = wide ? y / 3 : y;
      return column < 0 || column >= 28 ? 0 : pixels[static_cast<std::size_t>(row * 28 + column)];
    };
    const std::string file = folder / fmt::format("{}.{}", i, i % 4 == 1 ? "jpg" : "png");
    if (wide)
      write_image(file, picture(84, 168, 3, at), 84, 168);
    else
      write_image(file, picture(28, 28, 1, at), 28, 28, 1);
    words.push_back(file);
  }
  const ProgramResult r = run_program("mnist_mlp", words);
  CAPTURE(r.err);
  REQUIRE(r.status == 0);
  std::istringstream lines(r.out);
  int right = 0, read = 0;
  for (std::string line; std::getline(lines, line); ++read) {
    const auto json = json_of(line);
    CHECK(json["file"] == words[static_cast<std::size_t>(6 + read)]);
    CHECK(json["classes"].size() == 5);
    right += json["classes"][0]["index"] == labels[static_cast<std::size_t>(read)] ? 1 : 0;
  }
  CHECK(read == 20);
  CHECK(right >= 18);

  // What cannot be decoded is named, after the lines of the images before it.
  write_bytes(folder / "broken.png", "no image");
  const ProgramResult broken =
      run_program("mnist_mlp", {"--data", "synthetic", "--load", folder / "weights.safetensors",
                                "--predict", folder / "0.png", folder / "broken.png"});
  CHECK(broken.status == 2);
  CHECK(broken.out.starts_with((folder / "0.png").string() + ": "));
  CHECK(broken.err.find((folder / "broken.png").string()) != broken.err.npos);
}

TEST_CASE("prediction: lines for people and for programs") {
  const std::vector<Guess> guesses = {{.index = 3, .name = "a cat", .probability = 0.8125},
                                      {.index = 0, .name = "0", .probability = 0.1}};
  CHECK(text_of("x.png", guesses) == "x.png: a cat 81.2%, 0 10.0%");
  CHECK(json_of("x.png", guesses) ==
        R"({"file":"x.png","classes":[{"class":"a cat","index":3,"probability":0.8125},)"
        R"({"class":"0","index":0,"probability":0.1}]})");
}

TEST_CASE("prediction: what cannot be predicted is refused") {
  const auto refusal = [](const std::vector<std::string>& words) {
    const ProgramResult r = run_program("mnist_mlp", words);
    CHECK(r.status == 2);
    return r.err;
  };
  CHECK(refusal({"--predict", "x.png"}) ==
        "mnist_mlp: --predict needs --load or --resume-weights, for the weights\n");
  CHECK(refusal({"--predict", "x.png", "--load", "y", "--workers", "2"}) ==
        "mnist_mlp: --predict runs on one worker, not on 2\n");
  CHECK(refusal({"--json"}) == "mnist_mlp: --json has no effect without --predict\n");
  DataSplit features;
  features.test = std::make_shared<FeatureDataset>(Shape{4, 4, 64}, 10, std::vector<float>(1024),
                                                   std::vector<std::int32_t>{1});
  CHECK(message_of<UserError>([&] { ImageFiles({"x.png"}, features); }) ==
        "this net does not take images, but samples of [4, 4, 64]");
}
