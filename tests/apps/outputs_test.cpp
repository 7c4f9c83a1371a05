// What a run prints and which files it writes, also where that fails.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "tests/apps/mnist_mlp.h"
#include "tests/data/idx_files.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/file_lock.h"
#include "train/safetensors.h"
#include "train/version.h"

using namespace tandem::test;

TEST_CASE("command line: the summary says which version and commit made it") {
  const ProgramResult r = run_program("mnist_mlp", {"--data", few_digits(), "--iterations", "1",
                                                    "--quiet", "--summary", "/dev/stdout"});
  REQUIRE(r.status == 0);
  const auto json = json_of(r.out);
  CHECK(json["version"] == tandem::tandem_version());
  CHECK(json["commit"] == (tandem::tandem_commit().empty()
                               ? nlohmann::json()
                               : nlohmann::json(tandem::tandem_commit())));
}

TEST_CASE("command line: a short run prints its results, and --quiet prints nothing") {
  const TemporaryFolder folder;
  const Words words = {"--data", few_digits(), "--iterations", "3", "--threads", "1"};
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
  const auto json = json_of(read_bytes(folder / "summary.json"));
  CHECK(loud.out.find(json["weights_hash"].get<std::string>()) != std::string::npos);
}

TEST_CASE("command line: a run of whole epochs counts them") {
  for (const Words& length : {Words{"--epochs", "2"}, Words{"--iterations", "4"}}) {
    Words words = {"--data", few_digits(), "--threads", "1"};
    words.insert(words.end(), length.begin(), length.end());
    const std::string out = run_program("mnist_mlp", words).out;
    CHECK(out.find("epoch 1/2 ") != std::string::npos);
    CHECK(out.find("epoch 2/2 ") != std::string::npos);
  }
}

TEST_CASE("command line: --timeline draws the threads of worker 0, in lines of 80 characters") {
  const ProgramResult r = run_program(
      "mnist_mlp", {"--data", few_digits(), "--iterations", "6", "--workers", "2", "--timeline"});
  REQUIRE(r.status == 0);
  const std::size_t begin = r.out.find("\nworker 0, iterations ");
  REQUIRE(begin != std::string::npos);
  const std::string timeline = r.out.substr(begin);
  for (const char* part :
       {"\n  iteration      |", "\n  compute        ", "\n  communicate", " |0 ms", "F forward"})
    CHECK(timeline.find(part) != std::string::npos);
  std::istringstream lines(timeline);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);

  CHECK(refusal({"--data", few_digits(), "--timeline", "--quiet"}) ==
        "mnist_mlp: --timeline and --quiet cannot be used together\n");
  CHECK(refusal({"--data", few_digits(), "--timeline-ms", "2"}) ==
        "mnist_mlp: --timeline-ms has no effect without --timeline\n");
}

TEST_CASE("command line: files are compared, not their names") {
  const TemporaryFolder folder;
  const std::string weights = folder / "weights";
  const Words words = {"--data", few_digits(), "--iterations", "1", "--threads", "1", "--quiet"};
  Words save = words;
  save.insert(save.end(), {"--save", weights});
  REQUIRE(run_program("mnist_mlp", save).status == 0);
  const std::string bytes = read_bytes(weights);
  const std::string other = folder.path().string() + "/./weights";
  for (const char* option : {"--summary", "--metrics", "--csv", "--trace", "--profile"}) {
    CHECK(refusal({"--data", few_digits(), "--save", weights, option, other})
              .find("would write to the same file") != std::string::npos);
    CHECK(refusal({"--data", few_digits(), "--load", weights, option, other})
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
  write_bytes(folder / "old", "lines");
  for (const char* option : {"--metrics", "--csv"}) {
    for (const char* name : {"old", "new"})
      refusal({"--data", few_digits(), "--batch", "300", option, folder / name});
    CHECK(read_bytes(folder / "old") == "lines");
    CHECK_FALSE(std::filesystem::exists(folder / "new"));
  }
}

TEST_CASE("command line: a metrics file is refused while another run writes it") {
  const TemporaryFolder folder;
  const std::string metrics = folder / "metrics";
  const tandem::LockedFile other = tandem::open_locked(metrics);
  for (const char* option : {"--metrics", "--csv"})
    CHECK(refusal({"--data", few_digits(), option, metrics}) ==
          fmt::format("mnist_mlp: {}: another run is writing to {}; choose another file\n", option,
                      metrics));
}

TEST_CASE("command line: - is standard output, and progress then goes to stderr") {
  const TemporaryFolder folder;
  const Words words = {"--data", few_digits(), "--iterations", "2", "--threads", "1"};
  const auto run = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult r = run_program("mnist_mlp", all);
    CHECK(r.status == 0);
    return r;
  };
  for (const char* name : {"-", "/dev/stdout"}) {
    const ProgramResult r = run({"--summary", name});
    CHECK(json_of(r.out)["iterations"] == 2);
    CHECK(r.err.find("test accuracy") != std::string::npos);
    CHECK(run({"--summary", name, "--quiet"}).err.empty());
  }
  const std::string metrics = run({"--metrics", "-", "--quiet"}).out;
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 3);
  CHECK(json_of(metrics.substr(0, metrics.find('\n')))["iteration"] == 1);
  CHECK(json_of(run({"--trace", "-"}).out).contains("traceEvents"));
  CHECK(run({"--profile", "-"}).out.starts_with("tandem profile 1\nnet MNIST-MLP\n"));
  write_bytes(folder / "weights", run({"--save", "-"}).out);
  CHECK(tandem::read_safetensors(folder / "weights").size() == 6);
  CHECK_FALSE(std::filesystem::exists("-"));
  CHECK(refusal({"--data", few_digits(), "--summary", "-", "--trace", "-"}) ==
        "mnist_mlp: --summary and --trace would both write to standard output\n");
}

TEST_CASE("command line: an output that fails is reported, and the others are written") {
  const TemporaryFolder folder;
  const Words outputs[] = {{"--save", folder / "save"},   {"--metrics", folder / "metrics"},
                           {"--csv", folder / "csv"},     {"--summary", folder / "summary"},
                           {"--trace", folder / "trace"}, {"--profile", folder / "profile"}};
  for (const Words& full : outputs) {
    CAPTURE(full[0]);
    Words words = {"--data", few_digits(), "--iterations", "2", "--test-every", "1"};
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
      "mnist_mlp", {"--data", few_digits(), "--iterations", "10", "--workers", "2", "--algo",
                    "merge", "--plan", "/dev/full", "--summary", folder / "summary"});
  CHECK(r.status == 1);
  CHECK(r.out.find("weights hash") != std::string::npos);
  const std::string reason = "--plan: cannot write /dev/full: No space left on device";
  CHECK(r.err == "mnist_mlp: " + reason + "; the run continues without it\n" +
                     "mnist_mlp: not everything could be written: " + reason + "\n");
  CHECK(json_of(read_bytes(folder / "summary"))["plan"]["first_iteration"] == 10);
}

TEST_CASE("command line: a closed standard output does not end a run") {
  const TemporaryFolder folder;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  ::close(pipe[0]);
  const ProgramResult r =
      Process({path_of_program("mnist_mlp"), "--data", few_digits(), "--iterations", "2",
               "--test-every", "1", "--save", folder / "weights"},
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
  const ProgramResult r =
      Process({"sh", "-c", "exec \"$@\" >&- <&-", "sh", path_of_program("mnist_mlp"), "--data",
               few_digits(), "--iterations", "1", "--metrics", folder / "metrics"})
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
  // 1,024 bytes: the lines of one test fit into the metrics, those of three do not.
  const ProgramResult r =
      Process({"bash", "-c", "ulimit -f 1 && exec \"$@\"", "bash", path_of_program("mnist_mlp"),
               "--data", few_digits(), "--iterations", "15", "--test-every", "5", "--quiet",
               "--metrics", folder / "metrics", "--summary", folder / "summary"})
          .wait();
  CHECK(r.status == 1);
  CHECK(r.err.find("--metrics: cannot write") != std::string::npos);
  CHECK(r.err.find("--summary: cannot write") != std::string::npos);
  const std::string metrics = read_bytes(folder / "metrics");
  CHECK(metrics.size() > 100);
  CHECK(metrics.ends_with("}\n"));  // whole lines
  CHECK_FALSE(std::filesystem::exists(folder / "summary"));
}
