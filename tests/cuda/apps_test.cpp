// The programs with --device cuda, compared with --device cpu.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tensor/memo_file.h"
#include "tests/cuda/compare.h"
#include "tests/json.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Words = std::vector<std::string>;

// A program that runs and writes a summary.
class Run {
 public:
  Run(const std::string& app, const Words& arguments, const Words& more)
      : process_(words(app, arguments, more, folder_ / "summary.json")) {}

  nlohmann::json summary() {
    const ProgramResult r = process_.wait();
    CAPTURE(r.err);
    REQUIRE(r.status == 0);
    CHECK(r.err.empty());
    return json_of(read_bytes(folder_ / "summary.json"));
  }
  double loss() { return summary()["train_loss"].get<double>(); }

 private:
  static Words words(const std::string& app, const Words& arguments, const Words& more,
                     const std::string& summary) {
    Words all = {path_of_program(app)};
    for (const Words& some : {arguments, more, Words{"--quiet", "--summary", summary}})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }

  TemporaryFolder folder_;
  Process process_;
};

nlohmann::json summary_of(const std::string& app, const Words& arguments, const Words& more) {
  return Run(app, arguments, more).summary();
}

// A few iterations in fp32 stay near each other, however they are rounded.
constexpr double kNear = 1e-2;
// And do not stray far if activations are bf16.
constexpr double kNearBf16 = 0.1;

// All runs of a program share the GPU: each spends most of its time choosing algorithms.
void check(const std::string& app, Words arguments) {
  CAPTURE(app);
  arguments.insert(arguments.end(), {"--data", "synthetic", "--iterations", "4", "--lr", "0.01"});
  Run on_cpu(app, arguments, {});
  Run graphs(app, arguments, {"--device", "cuda"});
  Run direct(app, arguments, {"--device", "cuda", "--graphs", "off", "--deterministic"});
  Run tf32(app, arguments, {"--device", "cuda", "--precision", "tf32"});
  Run bf16(app, arguments, {"--device", "cuda", "--precision", "bf16"});
  const double cpu = on_cpu.loss();
  CHECK(graphs.loss() == doctest::Approx(cpu).epsilon(kNear));
  CHECK(direct.loss() == doctest::Approx(cpu).epsilon(kNear));
  CHECK(tf32.loss() == doctest::Approx(cpu).epsilon(kNearBf16));
  CHECK(bf16.loss() == doctest::Approx(cpu).epsilon(kNearBf16));
}

// Where the programs keep what they have measured, for the time of a test.
class CacheFolder {
 public:
  CacheFolder() { ::setenv("TANDEM_CACHE", folder_.path().c_str(), 1); }
  ~CacheFolder() { ::setenv("TANDEM_CACHE", "", 1); }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      all.push_back(entry.path());
    return all;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("cuda: apps: every program trains on the GPU as on the CPU") {
  check("mnist_mlp", {"--batch", "100"});
  check("cifar_cnn", {"--batch", "50"});
  check("cifar_convex", {"--batch", "50"});
  check("resnet", {"--dataset", "cifar10", "--depth", "20", "--batch", "32"});
  check("resnet", {"--image-size", "64", "--depth", "18", "--batch", "16"});
  check("alexnet", {"--image-size", "64", "--batch", "16"});
  check("googlenet", {"--image-size", "64", "--batch", "16"});
  // With smaller images and batches, rounding the weights by 1e-7 changes the loss by 1%.
  check("inception", {"--image-size", "139", "--batch", "32"});
  check("vgg", {"--dataset", "cifar10", "--depth", "11", "--batch", "16"});
  check("alexnet", {"--variant", "classic", "--image-size", "64", "--batch", "16"});
}

TEST_CASE("cuda: apps: the fastest algorithms are chosen once for all runs") {
  const CacheFolder cache;
  const Words two_workers = {"--device", "cuda", "--workers", "2"};
  const auto loss = [&](const Words& more = {}) {
    Words words = two_workers;
    words.insert(words.end(), more.begin(), more.end());
    return summary_of("cifar_cnn", {"--batch", "50", "--data", "synthetic", "--iterations", "4"},
                      words)["train_loss"]
        .get<double>();
  };
  const double first = loss({"--deterministic"});
  CHECK(cache.files().empty());  // by rule, not by measuring
  const auto near = doctest::Approx(first).epsilon(kNear);
  CHECK(loss() == near);
  REQUIRE(cache.files().size() == 1);
  const auto file = cache.files()[0];
  const std::string measured = read_bytes(file);
  const auto lines = [&] { return std::ranges::count(read_bytes(file), '\n'); };
  const auto all = lines();
  CHECK(all > 4);
  CHECK(loss() == near);
  CHECK(read_bytes(file) == measured);  // nothing was measured again

  // A choice that cuDNN no longer offers in its place is measured again.
  const std::string key = measured.substr(0, measured.find('\t'));
  const MemoFile memo(file);
  memo.add(key, memo.find(key).value() + " of old");
  CHECK(loss() == near);
  CHECK(lines() == all + 2);
  CHECK(!MemoFile(file).find(key).value().ends_with(" of old"));

  write_bytes(file, measured.substr(0, measured.size() / 2));  // a damaged file
  CHECK(loss() == near);
  CHECK(lines() >= all);
}

TEST_CASE("cuda: apps: workers share the GPU and write all files") {
  const TemporaryFolder folder;
  const auto json = summary_of(
      "cifar_cnn",
      {"--data", "synthetic", "--iterations", "6", "--batch", "40", "--device", "cuda"},
      {"--precision", "bf16", "--workers", "2", "--algo", "pipe-sgd", "--compress", "quant8",
       "--save", folder / "weights", "--metrics", folder / "metrics", "--trace", folder / "trace"});
  CHECK(json["options"]["device"] == "cuda");
  CHECK(json["options"]["precision"] == "bf16");
  CHECK(json["options"]["graphs"] == "on");
  CHECK(json["breakdown_ms"]["forward"].get<double>() > 0);
  CHECK(json["breakdown_ms"]["backward"].get<double>() > 0);
  CHECK(!read_bytes(folder / "metrics").empty());
  CHECK(!json_of(read_bytes(folder / "trace"))["traceEvents"].empty());

  // The weights are f32, and the CPU can take them.
  const auto tested = summary_of("cifar_cnn", {"--data", "synthetic", "--epochs", "0"},
                                 {"--load", folder / "weights"});
  CHECK(tested["weights_hash"] == json["weights_hash"]);
  CHECK(std::abs(tested["test_accuracy"].get<double>() - json["test_accuracy"].get<double>()) <
        0.02);
}
