// The programs of the convolutional benchmarks as a user starts them.
#include <doctest/doctest.h>

#include "tests/data/image_files.h"
#include "tests/json.h"
#include "tests/support.h"

using namespace tandem::test;

namespace {

using Words = std::vector<std::string>;

// The program must refuse with one line on stderr and status 2; returns the line.
std::string refusal(const std::string& app, const Words& arguments) {
  const ProgramResult r = run_program(app, arguments);
  CAPTURE(r.err);
  CHECK(r.status == 2);
  CHECK(r.err.starts_with(app + ": "));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  return r.err;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Runs quietly to the end; returns the summary.
nlohmann::json summary_of(const std::string& app, Words arguments) {
  const TemporaryFolder folder;
  arguments.insert(arguments.end(), {"--quiet", "--summary", folder / "summary.json"});
  const ProgramResult r = run_program(app, arguments);
  CAPTURE(r.err);
  REQUIRE(r.status == 0);
  CHECK(r.out.empty());
  return json_of(read_bytes(folder / "summary.json"));
}

}  // namespace

TEST_CASE("net apps: --help shows the shared options and the program's own") {
  const std::vector<std::pair<std::string, Words>> own = {
      {"cifar_cnn", {"--dataset", "--no-augment", "CIFAR-100"}},
      {"cifar_convex", {"--dataset", "--features", "--augment", "convex"}},
      {"alexnet",
       {"--variant", "--image-size", "--skip-bad-images", "--max-pixels", "--loader-threads",
        "--batch N", "256"}},
      {"resnet",
       {"--dataset", "--depth", "--image-size", "--no-augment", "--batch N", "256",
        "--warmup-epochs N"}},
      {"vgg", {"--dataset", "--depth N=16", "--batch-norm", "--image-size", "--no-augment"}},
      {"googlenet", {"--image-size", "--loader-threads", "auxiliary", "--batch N", "256"}},
      {"inception", {"--image-size", "Default: 299", "auxiliary", "--batch N", "256"}}};
  for (const auto& each : own) {
    const std::string& app = each.first;
    CAPTURE(app);
    const ProgramResult r = run_program(app, {"--help"});
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(has(r.out, "This program"));
    CHECK(has(r.out, "--data DIR|synthetic"));
    CHECK(has(r.out, "--algo"));
    for (const std::string& part : each.second) CHECK_MESSAGE(has(r.out, part), part);
  }
}

TEST_CASE("net apps: an invalid value is refused with the option's name") {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"cifar_cnn", {"--dataset", "mnist"}},
      {"cifar_cnn", {"--depth", "20"}},
      {"cifar_cnn", {"--data", "/no/such/folder"}},
      {"cifar_convex", {"--features", ""}},
      {"alexnet", {"--variant", "modern"}},
      {"alexnet", {"--image-size", "0"}},
      {"alexnet", {"--image-size", "5000"}},
      {"alexnet", {"--loader-threads", "0"}},
      {"alexnet", {"--data", "/no/such/folder"}},
      {"resnet", {"--depth", "19"}},
      {"resnet", {"--depth", "deep"}},
      {"resnet", {"--dataset", "imagenet"}},
      {"inception", {"--depth", "3"}},
      {"inception", {"--image-size", "0"}},
      {"googlenet", {"--depth", "18"}},
      {"googlenet", {"--data", "/no/such/folder"}},
      {"vgg", {"--depth", "18"}},
      {"vgg", {"--batch-norm", "on"}}};
  for (const auto& each : cases) {
    const std::string& app = each.first;
    const Words& words = each.second;
    CAPTURE(app);
    CAPTURE(words[0]);
    const std::string line = refusal(app, words);
    CHECK((has(line, words[0]) || has(line, words[1])));
  }
  CHECK(
      has(refusal("cifar_cnn", {"--dataset", "mnist"}), "must be cifar10 or cifar100, not mnist"));
}

TEST_CASE("net apps: contradictory options are refused") {
  CHECK(refusal("resnet", {"--dataset", "cifar10", "--depth", "50"}) ==
        "resnet: --depth 50 is not available for --dataset cifar10: choose from 20, 32, 44, 56, "
        "110\n");
  CHECK(refusal("resnet", {"--data", "synthetic", "--depth", "20"}) ==
        "resnet: --depth 20 is not available for --dataset folder: choose from 18, 34, 50, 101, "
        "152\n");
  CHECK(has(refusal("resnet", {"--dataset", "cifar100", "--image-size", "64"}),
            "have no effect with --dataset cifar100"));
  CHECK(has(refusal("resnet", {"--dataset", "cifar10", "--max-pixels", "64"}),
            "have no effect with --dataset cifar10"));
  CHECK(
      has(refusal("resnet", {"--no-augment"}), "--no-augment has no effect with --dataset folder"));
  CHECK(has(refusal("resnet", {"--dataset", "synthetic", "--data", "/tmp"}),
            "--data /tmp has no effect with --dataset synthetic"));
  CHECK(has(refusal("alexnet", {"--data", "synthetic", "--skip-bad-images"}),
            "--skip-bad-images needs --data with a folder"));
  CHECK(
      has(refusal("cifar_convex", {"--features", "a", "--load", "b"}), "cannot be used together"));
  CHECK(has(refusal("alexnet", {"--data", "synthetic", "--image-size", "32"}),
            "AlexNet needs images of at least 63 x 63 pixels, not 32 x 32"));
  CHECK(has(refusal("resnet", {"--data", "synthetic", "--image-size", "16", "--workers", "2"}),
            "ResNet-18 needs images of at least 32 x 32 pixels"));
  CHECK(refusal("vgg", {"--data", "synthetic", "--depth", "12"}) ==
        "vgg: --depth 12 is not available: choose from 11, 13, 16, 19\n");
  CHECK(has(refusal("vgg", {"--dataset", "cifar10", "--image-size", "64"}),
            "have no effect with --dataset cifar10"));
  CHECK(has(refusal("vgg", {"--data", "synthetic", "--image-size", "31"}),
            "VGG-16 needs images of at least 32 x 32 pixels, not 31 x 31"));
  CHECK(has(refusal("cifar_convex", {"--data", "synthetic", "--features", "/no/such/file"}),
            "/no/such/file"));
}

TEST_CASE("net apps: the convex net can use a trained net's features, also with other classes") {
  const TemporaryFolder folder;
  write_cifar(folder.path(), 20);
  const std::string weights = folder / "cnn.safetensors";
  const auto cnn = summary_of("cifar_cnn", {"--data", folder.path(), "--iterations", "2", "--batch",
                                            "10", "--save", weights});
  CHECK(cnn["options"]["dataset"] == "cifar100");
  CHECK(cnn["options"]["no_augment"] == false);
  CHECK(cnn["parameters"] == 151'428);
  const Words convex = {"--data",       folder.path(), "--dataset", "cifar10",
                        "--iterations", "2",           "--batch",   "10"};
  Words with = convex;
  with.insert(with.end(), {"--features", weights});
  const auto random = summary_of("cifar_convex", convex),
             trained = summary_of("cifar_convex", with);
  CHECK(random["parameters"] == 145'578);
  CHECK(random["weights_hash"] != trained["weights_hash"]);
  CHECK(trained["options"]["features"] == weights);
}

TEST_CASE("net apps: residual nets train on CIFAR's shape on two workers") {
  const TemporaryFolder folder;
  write_cifar(folder.path(), 10);
  const auto json =
      summary_of("resnet", {"--dataset", "cifar10", "--data", folder.path(), "--iterations", "2",
                            "--batch", "8", "--workers", "2", "--threads", "1"});
  CHECK(json["options"]["depth"] == 20);
  CHECK(json["options"]["warmup_epochs"] == 5);
  CHECK(json["net"] == "ResNet-20");
  CHECK(json["parameters"] == 272'474);
}

TEST_CASE("net apps: VGG trains on CIFAR's shape on two workers") {
  const TemporaryFolder folder;
  write_cifar(folder.path(), 4);
  const auto json = summary_of(
      "vgg", {"--dataset", "cifar100", "--data", folder.path(), "--depth", "11", "--batch-norm",
              "--iterations", "1", "--batch", "4", "--workers", "2", "--threads", "1"});
  CHECK(json["options"]["depth"] == 11);
  CHECK(json["options"]["batch_norm"] == true);
  CHECK(json["parameters"] == 9'220'480 + 2 * 2'752 + 513 * 100);
}

// Iteration 10 is the first one with the buckets. Too slow with sanitizers.
TEST_CASE("net apps: GoogLeNet gives the same weights whenever it communicates" *
          doctest::skip(kSanitized)) {
  const auto hash = [](const Words& algo) {
    const TemporaryFolder folder;
    Words words = {"--data",  "synthetic", "--image-size", "32", "--iterations", "11",
                   "--batch", "4",         "--workers",    "2",  "--threads",    "1"};
    words.insert(words.end(), algo.begin(), algo.end());
    return summary_of("googlenet", words)["weights_hash"];
  };
  const auto after = hash({"--algo", "d-sync"});
  CHECK(hash({"--algo", "wfbp"}) == after);
  CHECK(hash({"--algo", "buckets", "--bucket-mb", "5"}) == after);
  CHECK(hash({"--algo", "p3"}) == after);
}

TEST_CASE("net apps: a broken photograph in a folder can be skipped") {
  const TemporaryFolder folder;
  for (const char* half : {"train", "val"})
    for (const int i : {0, 1, 2, 3})
      write_image(folder / half / (i % 2 ? "odd" : "even") / (std::to_string(i) + ".png"),
                  random_picture(40, 50, static_cast<std::uint64_t>(i)), 40, 50);
  write_bytes(folder / "train/odd/3.png", "broken");
  const Words words = {"--data",  folder.path(), "--image-size", "32", "--iterations", "2",
                       "--batch", "4",           "--threads",    "1"};
  CHECK(has(refusal("resnet", words), "3.png"));
  Words skip = words;
  skip.insert(skip.end(), {"--skip-bad-images", "--loader-threads", "2"});
  const auto json = summary_of("resnet", skip);
  CHECK(json["skipped_images"]["count"] == 1);
  CHECK(json["parameters"] == 11'689'512 - 998 * 513);
}
