// The programs as a person starts them: what they print, and how they end.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tensor/cuda/cuda_backend.h"
#include "tensor/error.h"
#include "tests/data/idx_files.h"
#include "tests/support.h"
#include "train/version.h"

using namespace tandem::test;

namespace {

using Words = std::vector<std::string>;

// Runs mnist_mlp, which must refuse with one line on stderr and status 2; returns the line.
std::string refusal(const Words& arguments) {
  const ProgramResult r = run_program("mnist_mlp", arguments);
  CHECK(r.status == 2);
  CHECK(r.err.starts_with("mnist_mlp: "));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  return r.err;
}

}  // namespace

TEST_CASE("command line: a value that makes no sense is refused with the option's name") {
  const std::vector<Words> cases = {{"--batch", "0"},
                                    {"--batch", "-5"},
                                    {"--batch", "many"},
                                    {"--batch", "1.5"},
                                    {"--epochs", "-1"},
                                    {"--iterations", "0"},
                                    {"--lr", "0"},
                                    {"--lr", "nan"},
                                    {"--lr", "inf"},
                                    {"--lr", "-0.1"},
                                    {"--momentum", "1"},
                                    {"--momentum", "-0.1"},
                                    {"--weight-decay", "-1"},
                                    {"--seed", "-1"},
                                    {"--threads", "0"},
                                    {"--threads", "5000"},
                                    {"--workers", "0"},
                                    {"--algo", "magic"},
                                    {"--compress", "zip"},
                                    {"--pipe-k", "0"},
                                    {"--servers", "0"},
                                    {"--warmup-epochs", "-1"},
                                    {"--stall-timeout", "0"},
                                    {"--stall-timeout", "1e10"},
                                    {"--trace", "/no/such/folder/file"},
                                    {"--device", "tpu"},
                                    {"--lr-schedule", "up"},
                                    {"--label-smoothing", "1"},
                                    {"--batch", "99999999999999999999"},
                                    {"--lr"},
                                    {"--save", "/no/such/folder/file"},
                                    {"--metrics", "/"},
                                    {"--save", ""},
                                    {"--epochs", "99999999999"},
                                    {"--iterations", "9223372036854775807"},
                                    {"--lr-step-epochs", "2305843009213693952"},
                                    {"--lr", "1e300"},
                                    {"--seed", "18446744073709551616"},
                                    {"--summary", "/no/such/folder/file"}};
  for (const Words& words : cases) {
    CAPTURE(words[0]);
    CHECK(refusal(words).find(words[0]) != std::string::npos);
  }
}

TEST_CASE("command line: options that do not go together, and unknown ones") {
  CHECK(refusal({"--algo", "single", "--workers", "4"})
            .find("--workers 4 needs a distributed algorithm") != std::string::npos);
  CHECK(refusal({"--workers", "4", "--batch", "3"}).find("less than a sample for each") !=
        std::string::npos);
  CHECK(refusal({"--workers", "2", "--pipe-k", "2"}).find("means nothing to --algo d-sync") !=
        std::string::npos);
  CHECK(refusal({"--link", "1gbe"}).find("means nothing to --algo single") != std::string::npos);
  CHECK(refusal({"--workers", "2", "--link", "fast"})
            .starts_with("mnist_mlp: --link: must be none, 1gbe"));  // the option is named once
  CHECK(refusal({"--nesterov", "--momentum", "0"}).find("--nesterov") != std::string::npos);
  CHECK(refusal({"--epochs", "1", "--iterations", "5"}).find("exclude each other") !=
        std::string::npos);
  CHECK(refusal({"--save", "/tmp/x", "--summary", "/tmp/x"}).find("same file") !=
        std::string::npos);
}

TEST_CASE("command line: an unknown option is named, with the one that was probably meant") {
  const std::string end = " --help lists the options\n";
  CHECK(refusal({"--worker", "4"}) ==
        "mnist_mlp: there is no option --worker; did you mean --workers?" + end);
  CHECK(refusal({"--iter=5", "surprise"}) ==
        "mnist_mlp: there is no option --iter; did you mean --iterations?" + end);
  CHECK(refusal({"--learning-rate", "1"}) ==
        "mnist_mlp: there is no option --learning-rate;" + end);
  CHECK(refusal({"-lr", "1"}) == "mnist_mlp: there is no option -lr; did you mean --lr?" + end);
  CHECK(refusal({"surprise"}) == "mnist_mlp: \"surprise\" belongs to no option;" + end);
  // It comes before what may follow from it: here, that --out is missing.
  CHECK(run_program("speedup", {"--wokers", "4"}).err ==
        "speedup: there is no option --wokers; did you mean --workers?" + end);
}

TEST_CASE("command line: bad data and weights are refused with their path") {
  const TemporaryFolder folder;
  CHECK(refusal({"--data", folder / "none"}).find("does not exist") != std::string::npos);
  CHECK(refusal({"--data", folder.path()}).find("train-images-idx3-ubyte") != std::string::npos);
  write_mnist(folder.path(), 200, 10);
  write_bytes(folder / "train-images-idx3-ubyte", "broken");
  CHECK(refusal({"--data", folder.path()}).find("not an IDX file") != std::string::npos);
  write_bytes(folder / "weights", "broken");
  CHECK(refusal({"--data", "synthetic", "--load", folder / "weights"}).find("too short") !=
        std::string::npos);
  CHECK(refusal({"--data", "synthetic", "--batch", "30000"}).find("--batch 30000 is larger") !=
        std::string::npos);
}

TEST_CASE("command line: a GPU is never silently replaced by the CPU") {
  if (message_of<tandem::UserError>([] { tandem::cuda_device_count(); }).empty()) return;
  const std::string line = refusal({"--data", "synthetic", "--device", "cuda"});
  CHECK((line.find("CUDA") != std::string::npos || line.find("GPU") != std::string::npos));
}

TEST_CASE("command line: what only a GPU can do is refused for the CPU") {
  for (const char* precision : {"tf32", "bf16"})
    CHECK(refusal({"--data", "synthetic", "--precision", precision}) ==
          fmt::format("mnist_mlp: --precision {} needs --device cuda\n", precision));
  CHECK(refusal({"--data", "synthetic", "--graphs", "on"})
            .find("--graphs means nothing to --device cpu") != std::string::npos);
  CHECK(refusal({"--precision", "fp8"}).find("--precision") != std::string::npos);
  CHECK(refusal({"--graphs", "maybe"}).find("--graphs") != std::string::npos);
}

TEST_CASE("command line: --help explains every option and ends well") {
  const ProgramResult r = run_program("mnist_mlp", {"--help"});
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  for (const char* option : {"--algo",         "--workers", "--threads",
                             "--servers",      "--pipe-k",  "--warmup-epochs",
                             "--compress",     "--link",    "--stall-timeout",
                             "--trace",        "--batch",   "--epochs",
                             "--iterations",   "--lr",      "--momentum",
                             "--weight-decay", "--seed",    "--data",
                             "--device",       "--metrics", "--summary",
                             "--save",         "--load",    "--quiet",
                             "--precision",    "--graphs",  "--deterministic",
                             "--verify-every"})
    CHECK(r.out.find(option) != std::string::npos);
}

TEST_CASE("command line: every program says which version it is") {
  const std::regex line(
      "tandem [0-9]+\\.[0-9]+\\.[0-9]+(-[a-z0-9.]+)? "
      "\\((commit [0-9a-f]{7,40}(-dirty)?|unknown commit), (g\\+\\+|.*[Cc]lang) [0-9.]+[^,]*, "
      "((MPICH|Open MPI) [0-9.]+|no MPI), (CUDA [0-9.]+, cuDNN [0-9.]+|no CUDA)\\)\n");
  std::string first;
  for (const auto& app : std::filesystem::directory_iterator("apps")) {
    const std::string program = app.path().filename();
    // Some variants are built without some benchmarks.
    if (!std::filesystem::exists(path_of_program(program))) continue;
    CAPTURE(program);
    const ProgramResult r = run_program(program, {"--version"});
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(std::regex_match(r.out, line));
    if (first.empty()) first = r.out;
    CHECK(r.out == first);
  }
  CHECK(!first.empty());
}

TEST_CASE("command line: the summary says which version and commit made it") {
  const ProgramResult r = run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "1",
                                                    "--quiet", "--summary", "/dev/stdout"});
  REQUIRE(r.status == 0);
  const auto json = nlohmann::json::parse(r.out);
  CHECK(json["version"] == tandem::tandem_version());
  CHECK(json["commit"] == (tandem::tandem_commit().empty()
                               ? nlohmann::json()
                               : nlohmann::json(tandem::tandem_commit())));
}

TEST_CASE("command line: speedup's help says that --out is required") {
  const std::string help = run_program("speedup", {"--help"}).out;
  const std::size_t out = help.find("--out DIR");
  REQUIRE(out != std::string::npos);
  CHECK(help.substr(out, help.find('\n', out) - out).find("required") != std::string::npos);
}

TEST_CASE("command line: a short run prints its story, and --quiet prints nothing") {
  const TemporaryFolder folder;
  write_mnist(folder.path(), 200, 10);
  const Words words = {"--data", folder.path(), "--iterations", "3", "--threads", "1"};
  const ProgramResult loud = run_program("mnist_mlp", words);
  CHECK(loud.status == 0);
  CHECK(loud.err.empty());  // no progress bar: this is not a terminal
  for (const char* part : {"200 training and 10 test images", "648010 parameters",
                           "single, 1 worker, 1 thread, batch 100\n", "iteration 2/3 ",
                           "iteration 3/3 ", "3 iterations in", "test accuracy", "weights hash"})
    CHECK(loud.out.find(part) != std::string::npos);
  CHECK(loud.out.find("epoch ") == std::string::npos);  // the run ends within one

  Words quiet = words;
  quiet.insert(quiet.end(), {"--quiet", "--summary", folder / "summary.json"});
  const ProgramResult silent = run_program("mnist_mlp", quiet);
  CHECK(silent.status == 0);
  CHECK(silent.out.empty());
  CHECK(silent.err.empty());
  const auto json = nlohmann::json::parse(read_bytes(folder / "summary.json"));
  CHECK(loud.out.find(json["weights_hash"].get<std::string>()) != std::string::npos);
}

TEST_CASE("command line: a run of whole epochs counts them") {
  const TemporaryFolder folder;
  write_mnist(folder.path(), 200, 10);
  for (const Words& length : {Words{"--epochs", "2"}, Words{"--iterations", "4"}}) {
    Words words = {"--data", folder.path(), "--threads", "1"};
    words.insert(words.end(), length.begin(), length.end());
    const std::string out = run_program("mnist_mlp", words).out;
    CHECK(out.find("epoch 1/2 ") != std::string::npos);
    CHECK(out.find("epoch 2/2 ") != std::string::npos);
  }
}

TEST_CASE("command line: --timeline draws the threads of worker 0, in lines of 80 characters") {
  const ProgramResult r = run_program(
      "mnist_mlp", {"--data", "synthetic", "--iterations", "6", "--workers", "2", "--timeline"});
  REQUIRE(r.status == 0);
  const std::size_t begin = r.out.find("\nworker 0, iterations ");
  REQUIRE(begin != std::string::npos);
  const std::string timeline = r.out.substr(begin);
  for (const char* part : {"\n  iteration      |", "\n  compute        ", "\n  communicate    ",
                           " |0 ms", "F forward"})
    CHECK(timeline.find(part) != std::string::npos);
  std::istringstream lines(timeline);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);

  CHECK(refusal({"--data", "synthetic", "--timeline", "--quiet"}) ==
        "mnist_mlp: --timeline and --quiet exclude each other\n");
}

TEST_CASE("command line: numbers are decimal, and of an option given twice the last one counts") {
  const TemporaryFolder folder;
  write_mnist(folder.path(), 200, 10);
  const ProgramResult r =
      run_program("mnist_mlp", {"--data", folder.path(), "--iterations", "1", "--batch", "50",
                                "--batch", "010", "--seed", "18446744073709551615", "--quiet",
                                "--summary", folder / "summary.json"});
  CHECK(r.status == 0);
  const auto json = nlohmann::json::parse(read_bytes(folder / "summary.json"));
  CHECK(json["options"]["batch"] == 10);
  CHECK(json["options"]["seed"] == 18446744073709551615ULL);
}

TEST_CASE("command line: a summary can go to standard output") {
  const ProgramResult r = run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "1",
                                                    "--quiet", "--summary", "/dev/stdout"});
  CHECK(r.status == 0);
  CHECK(nlohmann::json::parse(r.out)["iterations"] == 1);
}

TEST_CASE("command line: a full disk is reported, and the status says so") {
  const ProgramResult metrics = run_program(
      "mnist_mlp",
      {"--data", "synthetic", "--iterations", "1", "--quiet", "--metrics", "/dev/full"});
  CHECK(metrics.status == 1);
  CHECK(metrics.err.find("cannot write /dev/full") != std::string::npos);

  const ProgramResult r = run_program(
      "mnist_mlp", {"--data", "synthetic", "--iterations", "1", "--quiet", "--save", "/dev/full"});
  CHECK(r.status == 1);
  CHECK(r.err.find("cannot write /dev/full: No space left on device") != std::string::npos);
}

TEST_CASE("bench_step: a warm training step allocates nothing") {
  const ProgramResult r = run_program(
      "bench_step",
      {"--model", "mnist_mlp", "--batch", "20", "--threads", "2", "--iterations", "30", "--json"});
  REQUIRE(r.status == 0);
  const auto json = nlohmann::json::parse(r.out);
  CHECK(json["allocations_per_step"] == 0);
  CHECK(json["min_ms"] <= json["median_ms"]);
  CHECK(json["median_ms"] <= json["p95_ms"]);
  CHECK(json["peak_memory_mb"].get<double>() > 0);
  CHECK(run_program("bench_step", {"--model", "nothing"}).status == 2);

  // A convolutional net, with its own batch where none is given.
  const ProgramResult conv = run_program(
      "bench_step", {"--model", "cifar_cnn", "--iterations", "1", "--warmup", "1", "--json"});
  REQUIRE(conv.status == 0);
  CHECK(nlohmann::json::parse(conv.out)["batch"] == 100);
}
