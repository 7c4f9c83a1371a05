// The programs as a user starts them: what they print, and their exit status.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "tensor/cuda/cuda_backend.h"
#include "tests/data/idx_files.h"
#include "tests/support.h"
#include "train/file_lock.h"
#include "train/safetensors.h"
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

// A data set that takes no time to load.
std::string few_digits(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 10);
  return folder / "digits";
}

}  // namespace

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
  CHECK(refusal({"--workers", "2", "--link", "fast"})
            .starts_with("mnist_mlp: --link: must be none, 1gbe"));  // the option is named once
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
  CHECK(refusal({"--data", "synthetic", "--load", folder / "weights"}).find("too short") !=
        std::string::npos);
  CHECK(refusal({"--data", "synthetic", "--batch", "30000"}).find("--batch 30000 is larger") !=
        std::string::npos);
}

TEST_CASE("command line: a run that diverges ends with status 3 and saves nothing") {
  const TemporaryFolder folder;
  for (const char* workers : {"1", "2"}) {
    const ProgramResult r =
        run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "9", "--lr", "1e20",
                                  "--workers", workers, "--quiet", "--save", folder / "weights"});
    CHECK(r.status == 3);
    CHECK(r.err.find("training diverged: the gradient of 0.weight") != std::string::npos);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK(!std::filesystem::exists(folder / "weights"));
  }
  // Also where nobody can be told.
  const std::string program = path_of_program("mnist_mlp");
  CHECK(Process({"sh", "-c",
                 program + " --data synthetic --iterations 9 --lr 1e20 --quiet 2>/dev/full"})
            .wait()
            .status == 3);
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
            .find("--graphs has no effect with --device cpu") != std::string::npos);
  CHECK(refusal({"--precision", "fp8"}).find("--precision") != std::string::npos);
  CHECK(refusal({"--graphs", "maybe"}).find("--graphs") != std::string::npos);
}

TEST_CASE("command line: --help explains every option and ends with status 0") {
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
                             "--verify-every", "--period",  "--profile"})
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

TEST_CASE("command line: a short run prints its results, and --quiet prints nothing") {
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
  for (const char* part :
       {"\n  iteration      |", "\n  compute        ", "\n  communicate", " |0 ms", "F forward"})
    CHECK(timeline.find(part) != std::string::npos);
  std::istringstream lines(timeline);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);

  CHECK(refusal({"--data", "synthetic", "--timeline", "--quiet"}) ==
        "mnist_mlp: --timeline and --quiet cannot be used together\n");
  CHECK(refusal({"--data", "synthetic", "--timeline-ms", "2"}) ==
        "mnist_mlp: --timeline-ms has no effect without --timeline\n");
}

TEST_CASE("command line: numbers are decimal, and the last of repeated options counts") {
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

TEST_CASE("command line: files are compared, not their names") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const std::string weights = folder / "weights";
  const Words words = {"--data", digits, "--iterations", "1", "--threads", "1", "--quiet"};
  Words save = words;
  save.insert(save.end(), {"--save", weights});
  REQUIRE(run_program("mnist_mlp", save).status == 0);
  const std::string bytes = read_bytes(weights);
  const std::string other = folder.path().string() + "/./weights";
  for (const char* option : {"--summary", "--metrics", "--csv", "--trace", "--profile"}) {
    CHECK(refusal({"--data", digits, "--save", weights, option, other})
              .find("would write to the same file") != std::string::npos);
    CHECK(refusal({"--data", digits, "--load", weights, option, other})
              .find(fmt::format("{} would overwrite {}, which --load reads", option, other)) !=
          std::string::npos);
  }
  CHECK(read_bytes(weights) == bytes);
  Words again = save;  // what was loaded may be replaced by what was made of it
  again.insert(again.end(), {"--load", other});
  CHECK(run_program("mnist_mlp", again).status == 0);
  CHECK(read_bytes(weights) != bytes);
}

TEST_CASE("command line: a refused run does not change the metrics file") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  write_bytes(folder / "old", "lines");
  for (const char* option : {"--metrics", "--csv"}) {
    for (const char* name : {"old", "new"})
      refusal({"--data", digits, "--batch", "300", option, folder / name});
    CHECK(read_bytes(folder / "old") == "lines");
    CHECK_FALSE(std::filesystem::exists(folder / "new"));
  }
}

TEST_CASE("command line: a metrics file is refused while another run writes it") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const std::string metrics = folder / "metrics";
  const tandem::LockedFile other = tandem::open_locked(metrics);
  for (const char* option : {"--metrics", "--csv"})
    CHECK(refusal({"--data", digits, option, metrics}) ==
          fmt::format("mnist_mlp: {}: another run is writing to {}; choose another file\n", option,
                      metrics));
}

TEST_CASE("command line: - is standard output, and progress then goes to stderr") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const Words words = {"--data", digits, "--iterations", "2", "--threads", "1"};
  const auto run = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult r = run_program("mnist_mlp", all);
    CHECK(r.status == 0);
    return r;
  };
  for (const char* name : {"-", "/dev/stdout"}) {
    const ProgramResult r = run({"--summary", name});
    CHECK(nlohmann::json::parse(r.out)["iterations"] == 2);
    CHECK(r.err.find("test accuracy") != std::string::npos);
    CHECK(run({"--summary", name, "--quiet"}).err.empty());
  }
  const std::string metrics = run({"--metrics", "-", "--quiet"}).out;
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 3);
  CHECK(nlohmann::json::parse(metrics.substr(0, metrics.find('\n')))["iteration"] == 1);
  CHECK(nlohmann::json::parse(run({"--trace", "-"}).out).contains("traceEvents"));
  CHECK(run({"--profile", "-"}).out.starts_with("tandem profile 1\nnet mnist_mlp\n"));
  write_bytes(folder / "weights", run({"--save", "-"}).out);
  CHECK(tandem::read_safetensors(folder / "weights").size() == 6);
  CHECK_FALSE(std::filesystem::exists("-"));
  CHECK(refusal({"--data", digits, "--summary", "-", "--trace", "-"}) ==
        "mnist_mlp: --summary and --trace would both write to standard output\n");
}

TEST_CASE("command line: an output that fails is reported, and the others are written") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const Words outputs[] = {{"--save", folder / "save"},   {"--metrics", folder / "metrics"},
                           {"--csv", folder / "csv"},     {"--summary", folder / "summary"},
                           {"--trace", folder / "trace"}, {"--profile", folder / "profile"}};
  for (const Words& full : outputs) {
    CAPTURE(full[0]);
    Words words = {"--data", digits, "--iterations", "2", "--test-every", "1"};
    for (const Words& output : outputs)
      words.insert(words.end(), {output[0], output[0] == full[0] ? "/dev/full" : output[1]});
    const ProgramResult r = run_program("mnist_mlp", words);
    CHECK(r.status == 1);
    CHECK(r.out.find("weights hash") != std::string::npos);
    const std::string reason = full[0] + ": cannot write /dev/full: No space left on device";
    const std::string early = "mnist_mlp: " + reason + "; the run continues without it\n";
    const bool meanwhile = full[0] == "--metrics" || full[0] == "--csv";
    CHECK(r.err == (meanwhile ? early : "") +
                       "mnist_mlp: not everything could be written: " + reason + "\n");
    for (const Words& output : outputs) {
      CHECK(std::filesystem::exists(output[1]) == (output[0] != full[0]));
      std::filesystem::remove(output[1]);
    }
  }
}

TEST_CASE("command line: a plan that cannot be written does not end the run") {
  const TemporaryFolder folder;
  const ProgramResult r = run_program(
      "mnist_mlp", {"--data", few_digits(folder.path()), "--iterations", "10", "--workers", "2",
                    "--algo", "merge", "--plan", "/dev/full", "--summary", folder / "summary"});
  CHECK(r.status == 1);
  CHECK(r.out.find("weights hash") != std::string::npos);
  const std::string reason = "--plan: cannot write /dev/full: No space left on device";
  CHECK(r.err == "mnist_mlp: " + reason + "; the run continues without it\n" +
                     "mnist_mlp: not everything could be written: " + reason + "\n");
  CHECK(nlohmann::json::parse(read_bytes(folder / "summary"))["plan"]["first_iteration"] == 10);
}

TEST_CASE("command line: only a bucket or slice that is given must fit the gradient") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const std::string end = " is larger than the whole gradient of 648048 elements (2.59 MB)\n";
  CHECK(refusal({"--data", digits, "--workers", "2", "--algo", "buckets", "--bucket-mb", "25"}) ==
        "mnist_mlp: --bucket-mb 25" + end);
  CHECK(refusal({"--data", digits, "--workers", "2", "--algo", "p3", "--slice", "1000000"}) ==
        "mnist_mlp: --slice 1000000" + end);
  CHECK(run_program("mnist_mlp",
                    {"--data", digits, "--workers", "2", "--algo", "buckets", "--iterations", "1"})
            .status == 0);
}

TEST_CASE("command line: a closed standard output does not end a run") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  ::close(pipe[0]);
  const ProgramResult r = Process({path_of_program("mnist_mlp"), "--data", digits, "--iterations",
                                   "2", "--test-every", "1", "--save", folder / "weights"},
                                  pipe[1])
                              .wait();
  ::close(pipe[1]);
  CHECK(r.status == 1);
  CHECK(r.err ==
        "mnist_mlp: standard output: cannot be written: Broken pipe; the run continues without it\n"
        "mnist_mlp: not everything could be written: "
        "standard output: cannot be written: Broken pipe\n");
  CHECK(tandem::read_safetensors(folder / "weights").size() == 6);
}

TEST_CASE("command line: no file gets the descriptor of a closed standard stream") {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  const ProgramResult r =
      Process({"sh", "-c", "exec \"$@\" >&- <&-", "sh", path_of_program("mnist_mlp"), "--data",
               digits, "--iterations", "1", "--metrics", folder / "metrics"})
          .wait();
  CHECK(r.status == 1);
  CHECK(r.err.find("standard output: cannot be written") != std::string::npos);
  const std::string metrics = read_bytes(folder / "metrics");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 2);
  CHECK(metrics.starts_with("{"));

  for (const char* closed : {"exec \"$@\" 2>&-", "exec \"$@\" 2>/dev/full"})
    CHECK(Process({"sh", "-c", closed, "sh", path_of_program("mnist_mlp"), "--nonsense"})
              .wait()
              .status == 2);
}

// ThreadSanitizer itself crashes under such a limit.
TEST_CASE("command line: a file size limit acts like a full disk and does not kill the run" *
          doctest::skip(kThreadSanitizer)) {
  const TemporaryFolder folder;
  const std::string digits = few_digits(folder.path());
  // 1,024 bytes: the lines of one test fit into the metrics, those of three do not.
  const ProgramResult r =
      Process({"bash", "-c", "ulimit -f 1 && exec \"$@\"", "bash", path_of_program("mnist_mlp"),
               "--data", digits, "--iterations", "15", "--test-every", "5", "--quiet", "--metrics",
               folder / "metrics", "--summary", folder / "summary"})
          .wait();
  CHECK(r.status == 1);
  CHECK(r.err.find("--metrics: cannot write") != std::string::npos);
  CHECK(r.err.find("--summary: cannot write") != std::string::npos);
  const std::string metrics = read_bytes(folder / "metrics");
  CHECK(metrics.size() > 100);
  CHECK(metrics.ends_with("}\n"));  // whole lines
  CHECK_FALSE(std::filesystem::exists(folder / "summary"));
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
