// Programs that are interrupted, and scripts/supervise, which starts them again.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>

#include "tests/apps/mpiexec.h"
#include "tests/data/idx_files.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/checkpoint.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Iterations that take some seconds.
constexpr std::int64_t kLength = kSanitized ? 90 : 400;

// Six iterations per epoch, so that runs resume within one.
Words run_for(std::int64_t iterations, const Words& more = {}) {
  Words words = {"--data",
                 few_digits(),
                 "--batch",
                 "30",
                 "--quiet",
                 "--threads",
                 "1",
                 "--workers",
                 "2",
                 "--iterations",
                 std::to_string(iterations)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words program(Words arguments) {
  arguments.insert(arguments.begin(), path_of_program("mnist_mlp"));
  return arguments;
}

Words supervised(const Words& arguments) {
  Words words = {"scripts/supervise", "--"};
  const Words command = program(arguments);
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

nlohmann::json summary_of(const ProgramResult& r) {
  CAPTURE(r.err);
  return json_of(r.out);
}

// The process with this parent; 0 if there is none.
pid_t child_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string status = read_bytes(entry.path() / "status");
    if (status.find("\nPPid:\t" + std::to_string(parent) + "\n") != status.npos)
      return static_cast<pid_t>(std::stol(entry.path().filename()));
  }
  return 0;
}

}  // namespace

TEST_CASE("interruption: Ctrl-C and SIGTERM save all, and the run continues to the same bits") {
  const std::string expected = summary_of(run_program(
      "mnist_mlp", run_for(kLength, {"--algo", "pipe-sgd", "--summary", "-"})))["weights_hash"];
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    const Words options = run_for(
        kLength, {"--algo", "pipe-sgd", "--summary", "-", "--save", folder / "weights.safetensors",
                  "--checkpoint", folder / "c", "--checkpoint-every", "20", "--resume", "auto"});
    Process process(program(options));
    process.wait_until([&] { return !checkpoints_in(folder / "c").empty(); });
    REQUIRE(::kill(process.pid(), signal) == 0);
    const ProgramResult stopped = process.wait();
    CHECK(stopped.status == 128 + signal);
    const nlohmann::json summary = summary_of(stopped);
    const std::int64_t after = summary["iterations"];
    CHECK(summary["interrupted"] == ::strsignal(signal));
    CHECK(stopped.err == "mnist_mlp: interrupted after iteration " + std::to_string(after) +
                             "; continue with --resume " + (folder / "c").string() + "\n");
    CHECK(std::filesystem::exists(folder / "weights.safetensors"));
    CHECK(checkpoints_in(folder / "c").back() == after);

    const ProgramResult continued = Process(program(options)).wait();
    CHECK(continued.status == 0);
    CHECK(summary_of(continued)["weights_hash"] == expected);
    CHECK(summary_of(continued)["interrupted"].is_null());
    CHECK(summary_of(continued)["starts"] == nlohmann::json({0, after}));
  }
}

TEST_CASE("interruption: without --checkpoint the run ends with its results, too") {
  const TemporaryFolder folder;
  Process process(
      program({"--data", few_digits(), "--threads", "1", "--iterations", "1000000", "--test-every",
               "1000000", "--summary", folder / "summary.json", "--profile", folder / "p"}));
  process.wait_until([&] { return process.out_so_far().find("model: ") != std::string::npos; });
  REQUIRE(::kill(process.pid(), SIGTERM) == 0);
  const ProgramResult r = process.wait();
  CHECK(r.status == 143);
  CHECK(r.err.find("; without --checkpoint the run cannot be continued\n") != r.err.npos);
  CHECK(r.out.find("test accuracy  not tested") != r.out.npos);
  const auto summary = json_of(read_bytes(folder / "summary.json"));
  CHECK(summary["test_accuracy"].is_null());
  CHECK(summary["iterations"] > 0);
  const bool timed = summary["iteration_ms"]["timed"] > 0;
  CHECK(std::filesystem::exists(folder / "p") == timed);
  CHECK((r.out.find("profile: not written, because no iteration was timed\n") != r.out.npos) ==
        !timed);
}

TEST_CASE("interruption: mpiexec passes the signal on, and all ranks save" *
          doctest::skip(!kHasMpich)) {
  const TemporaryFolder folder;
  Process mpiexec(under_mpiexec(
      3, "mnist_mlp",
      {"--data", few_digits(), "--quiet", "--threads", "1", "--iterations", "1000000", "--algo",
       "ps-sync", "--checkpoint", folder / "c", "--checkpoint-every", "10"}));
  mpiexec.wait_until([&] { return !checkpoints_in(folder / "c").empty(); });
  REQUIRE(::kill(mpiexec.pid(), SIGTERM) == 0);
  const ProgramResult r = mpiexec.wait();
  CHECK(r.status == 143);
  const std::int64_t after = checkpoints_in(folder / "c").back();
  CHECK(r.err == "mnist_mlp: interrupted after iteration " + std::to_string(after) +
                     "; continue with --resume " + (folder / "c").string() + "\n");
}

TEST_CASE("supervise: a killed run is started again and ends with the same bits") {
  const TemporaryFolder folder;
  const std::string expected = summary_of(run_program(
      "mnist_mlp", run_for(kLength, {"--algo", "p3", "--summary", "-"})))["weights_hash"];
  Process supervise(supervised(run_for(kLength, {"--algo", "p3", "--summary", "-", "--checkpoint",
                                                 folder / "c", "--checkpoint-every", "10"})));
  supervise.wait_until([&] { return !checkpoints_in(folder / "c").empty(); });
  const pid_t run = child_of(supervise.pid());
  REQUIRE(run > 0);
  REQUIRE(::kill(run, SIGKILL) == 0);
  const ProgramResult r = supervise.wait();
  CAPTURE(r.err);
  CHECK(r.status == 0);
  CHECK(summary_of(r)["weights_hash"] == expected);
  CHECK(
      r.err.starts_with("supervise: the run has died (killed by SIGKILL); it starts again after"));
}

TEST_CASE("supervise: it passes signals on, and does not repeat mistakes and divergence") {
  const TemporaryFolder folder;
  const std::string c = folder / "c";
  Process supervise(supervised(
      run_for(1'000'000, {"--checkpoint", c, "--checkpoint-every", "10", "--algo", "d-sync"})));
  supervise.wait_until([&] { return !checkpoints_in(c).empty(); });
  REQUIRE(::kill(supervise.pid(), SIGTERM) == 0);
  CHECK(supervise.wait().status == 143);

  const auto end_of = [&](const Words& arguments) { return Process(supervised(arguments)).wait(); };
  CHECK(end_of({"--batch", "0", "--checkpoint", c}).status == 2);
  const ProgramResult diverged =
      end_of(run_for(50, {"--lr", "1e30", "--checkpoint", folder / "d"}));
  CHECK(diverged.status == 3);
  CHECK(diverged.err.find("supervise") == diverged.err.npos);
  CHECK(end_of({"--batch", "10"}).err == "supervise: the command has no --checkpoint DIR\n");
  CHECK(end_of({"--checkpoint", c, "--resume", "auto"}).err ==
        "supervise: the command must not have --resume, because supervise adds it\n");

  // A run that never completes a checkpoint.
  const ProgramResult dies = Process({"scripts/supervise", "--tries", "2", "--", "sh", "-c",
                                      "exit 1", "sh", "--checkpoint", folder / "e"})
                                 .wait();
  CHECK(dies.status == 1);
  CHECK(dies.err ==
        "supervise: the run has died (status 1); it starts again from the beginning\n"
        "supervise: gives up (status 1): 2 starts in a row have completed no checkpoint\n");
}
