// Command lines: what programs refuse, what --help and --version print, and the exit status.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>

#include "base/error.h"
#include "tensor/cuda/cuda_backend.h"
#include "tests/apps/mnist_mlp.h"
#include "tests/data/idx_files.h"
#include "tests/json.h"
#include "tests/support.h"

using namespace tandem::test;

TEST_CASE("command line: an invalid value is refused with the option's name") {
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
                                    {"--compress", "topk:0"},
                                    {"--compress", "qsgd:9"},
                                    {"--compress", "powersgd:0"},
                                    {"--pipe-k", "0"},
                                    {"--servers", "0"},
                                    {"--warmup-epochs", "-1"},
                                    {"--stall-timeout", "0"},
                                    {"--stall-timeout", "1e10"},
                                    {"--trace", "/no/such/folder/file"},
                                    {"--profile", "/no/such/folder/file"},
                                    {"--profile", ""},
                                    {"--slice", "0"},
                                    {"--bucket-mb", "0"},
                                    {"--gossip-p", "0"},
                                    {"--gossip-p", "-0.1"},
                                    {"--gossip-p", "1.1"},
                                    {"--gossip-p", "nan"},
                                    {"--gossip-p", "often"},
                                    {"--topology", "star"},
                                    {"--plan", ""},
                                    {"--device", "tpu"},
                                    {"--lr-schedule", "up"},
                                    {"--label-smoothing", "1"},
                                    {"--batch", "99999999999999999999"},
                                    {"--lr"},
                                    {"--save", "/no/such/folder/file"},
                                    {"--metrics", "/"},
                                    {"--csv", "/"},
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

TEST_CASE("command line: contradictory and unknown options are refused") {
  CHECK(refusal({"--algo", "single", "--workers", "4"})
            .find("--workers 4 needs a distributed algorithm") != std::string::npos);
  CHECK(refusal({"--workers", "4", "--batch", "3"}).find("less than one sample for each") !=
        std::string::npos);
  CHECK(refusal({"--workers", "2", "--pipe-k", "2"}).find("has no effect with --algo d-sync") !=
        std::string::npos);
  CHECK(refusal({"--workers", "2", "--plan", "plan"}) ==
        "mnist_mlp: --plan has no effect with --algo d-sync\n");
  CHECK(refusal({"--link", "1gbe"}).find("has no effect with --algo single") != std::string::npos);
  CHECK(refusal({"--ranks-per-node", "2"}) ==
        "mnist_mlp: --ranks-per-node has no effect with --algo single\n");
  CHECK(refusal({"--workers", "2", "--link", "fast"})
            .starts_with("mnist_mlp: --link: must be none, 1gbe"));  // the option is named once
  CHECK(refusal({"--algo", "gosgd"}) ==
        "mnist_mlp: --algo gosgd needs at least 2 workers, not 1\n");
  CHECK(refusal({"--algo", "gosgd", "--workers", "2", "--gossip-p", "2"}) ==
        "mnist_mlp: --gossip-p: must be a number from 0.000001 to 1, not 2; --help lists the "
        "options\n");
  CHECK(refusal({"--algo", "ad-psgd", "--workers", "2", "--gossip-p", "0.5"}) ==
        "mnist_mlp: --gossip-p has no effect with --algo ad-psgd\n");
  CHECK(refusal({"--algo", "ad-psgd", "--workers", "2", "--compress", "trunc16"}) ==
        "mnist_mlp: --compress trunc16 is for gradients; --algo ad-psgd sends weights\n");
  CHECK(refusal({"--nesterov", "--momentum", "0"}).find("--nesterov") != std::string::npos);
  CHECK(refusal({"--epochs", "1", "--iterations", "5"}).find("cannot be used together") !=
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
  CHECK(refusal({"surprise"}) == "mnist_mlp: unexpected argument \"surprise\";" + end);
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
  CHECK(refusal({"--data", few_digits(), "--load", folder / "weights"}).find("too short") !=
        std::string::npos);
  CHECK(refusal({"--data", few_digits(), "--batch", "30000"}).find("--batch 30000 is larger") !=
        std::string::npos);
}

TEST_CASE("command line: a run that diverges ends with status 3 and saves nothing") {
  const TemporaryFolder folder;
  for (const char* workers : {"1", "2"}) {
    const ProgramResult r =
        run_program("mnist_mlp", {"--data", few_digits(), "--iterations", "9", "--lr", "1e20",
                                  "--workers", workers, "--quiet", "--save", folder / "weights"});
    CHECK(r.status == 3);
    CHECK(r.err.find("training diverged: the gradient of 0.weight") != std::string::npos);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK(!std::filesystem::exists(folder / "weights"));
  }
  // Also where nobody can be told.
  const std::string program = path_of_program("mnist_mlp");
  CHECK(Process(
            {"sh", "-c",
             program + " --data " + few_digits() + " --iterations 9 --lr 1e20 --quiet 2>/dev/full"})
            .wait()
            .status == 3);
}

TEST_CASE("command line: a GPU is never silently replaced by the CPU") {
  if (message_of<tandem::UserError>([] { tandem::cuda_device_count(); }).empty()) return;
  const std::string line = refusal({"--data", few_digits(), "--device", "cuda"});
  CHECK((line.find("CUDA") != std::string::npos || line.find("GPU") != std::string::npos));
}

TEST_CASE("command line: what only a GPU can do is refused for the CPU") {
  for (const char* precision : {"tf32", "bf16"})
    CHECK(refusal({"--data", few_digits(), "--precision", precision}) ==
          fmt::format("mnist_mlp: --precision {} needs --device cuda\n", precision));
  CHECK(refusal({"--data", few_digits(), "--graphs", "on"})
            .find("--graphs has no effect with --device cpu") != std::string::npos);
  CHECK(refusal({"--precision", "fp8"}).find("--precision") != std::string::npos);
  CHECK(refusal({"--graphs", "maybe"}).find("--graphs") != std::string::npos);
}

TEST_CASE("command line: --help explains every option and ends with status 0") {
  const ProgramResult r = run_program("mnist_mlp", {"--help"});
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  for (const char* option : {"--algo",          "--workers", "--threads",
                             "--servers",       "--pipe-k",  "--warmup-epochs",
                             "--compress",      "--link",    "--stall-timeout",
                             "--trace",         "--batch",   "--epochs",
                             "--iterations",    "--lr",      "--momentum",
                             "--weight-decay",  "--seed",    "--data",
                             "--device",        "--metrics", "--summary",
                             "--save",          "--load",    "--quiet",
                             "--precision",     "--graphs",  "--deterministic",
                             "--verify-every",  "--period",  "--profile",
                             "--ranks-per-node"})
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

TEST_CASE("command line: speedup's help says that --out is required") {
  const std::string help = run_program("speedup", {"--help"}).out;
  const std::size_t out = help.find("--out DIR");
  REQUIRE(out != std::string::npos);
  CHECK(help.substr(out, help.find('\n', out) - out).find("required") != std::string::npos);
}

TEST_CASE("command line: numbers are decimal, and the last of repeated options counts") {
  const TemporaryFolder folder;
  const ProgramResult r =
      run_program("mnist_mlp", {"--data", few_digits(), "--iterations", "1", "--batch", "50",
                                "--batch", "010", "--seed", "18446744073709551615", "--quiet",
                                "--summary", folder / "summary.json"});
  CHECK(r.status == 0);
  const auto json = json_of(read_bytes(folder / "summary.json"));
  CHECK(json["options"]["batch"] == 10);
  CHECK(json["options"]["seed"] == 18446744073709551615ULL);
}

TEST_CASE("command line: only a bucket or slice that is given must fit the gradient") {
  const std::string end = " is larger than the whole gradient of 648048 elements (2.59 MB)\n";
  CHECK(refusal({"--data", few_digits(), "--workers", "2", "--algo", "buckets", "--bucket-mb",
                 "25"}) == "mnist_mlp: --bucket-mb 25" + end);
  CHECK(refusal({"--data", few_digits(), "--workers", "2", "--algo", "p3", "--slice", "1000000"}) ==
        "mnist_mlp: --slice 1000000" + end);
  CHECK(run_program("mnist_mlp", {"--data", few_digits(), "--workers", "2", "--algo", "buckets",
                                  "--iterations", "1"})
            .status == 0);
}
