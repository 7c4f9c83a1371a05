// Programs under mpiexec: what they compute, and how they end.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "dist/runtime/clock.h"
#include "tests/data/idx_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Words = std::vector<std::string>;

const bool kHasMpi = !std::string(TANDEM_MPIEXEC).empty();

Words under_mpiexec(int ranks, const std::string& program, const Words& arguments) {
  Words words;
  std::istringstream launcher(TANDEM_MPIEXEC);
  for (std::string word; launcher >> word;) words.push_back(word);
  words.insert(words.end(), {"-n", std::to_string(ranks), path_of_program(program)});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

ProgramResult run_mpi(int ranks, const std::string& program, const Words& arguments) {
  return Process(under_mpiexec(ranks, program, arguments)).wait();
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string hash_in(const ProgramResult& r) {
  CAPTURE(r.err);
  REQUIRE(r.status == 0);
  return nlohmann::json::parse(r.out)["weights_hash"];
}

// The process of a rank in the job whose environment holds this mark.
pid_t find_rank(const std::string& mark, int rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_bytes(entry.path() / "comm") != "mnist_mlp\n") continue;
    const std::string environment = read_bytes(entry.path() / "environ");
    const auto has = [&](const std::string& variable) {
      return environment.find(variable + '\0') != std::string::npos;
    };
    if (has("TANDEM_TEST_MARK=" + mark) && (has("PMI_RANK=" + std::to_string(rank)) ||
                                            has("OMPI_COMM_WORLD_RANK=" + std::to_string(rank))))
      return static_cast<pid_t>(std::stol(name));
  }
  return 0;
}

// Starts a job of four ranks that would run for long, and does something to rank 2 once it trains.
// Returns how the job ended, which must not take long.
ProgramResult disturb_rank_2(const std::string& mark, int signal, const Words& arguments) {
  ::setenv("TANDEM_TEST_MARK", mark.c_str(), 1);
  Process job(under_mpiexec(4, "mnist_mlp",
                            Words{"--data", "synthetic", "--iterations", "1000000"} + arguments));
  ::unsetenv("TANDEM_TEST_MARK");
  const auto give_up = Clock::now() + std::chrono::seconds(30);
  while (job.out_so_far().find("network: MPI") == std::string::npos) {
    REQUIRE(Clock::now() < give_up);
    ::usleep(20'000);  // another process: there is nothing to wait on
  }
  const pid_t victim = find_rank(mark, 2);
  REQUIRE(victim > 0);
  const auto begin = Clock::now();
  REQUIRE(::kill(victim, signal) == 0);
  const ProgramResult result = job.wait();
  CHECK(seconds_between(begin, Clock::now()) < 10);
  return result;
}

}  // namespace

TEST_CASE("mpi: the ring sums rightly for all sizes" * doctest::skip(!kHasMpi)) {
  for (const int ranks : {1, 2, 3, 4, 5})
    for (const char* compress : {"none", "trunc16", "quant8"}) {
      const ProgramResult r = run_mpi(ranks, "allreduce_bench",
                                      {"--bytes", "0", "4", "28", "8188", "8192", "8196", "800012",
                                       "--iterations", "1", "--compress", compress, "--json"});
      CAPTURE(r.err);
      CHECK(r.status == 0);  // it checks every sum
      CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 7);
      CHECK(r.out.find("\"ranks\":" + std::to_string(ranks)) != std::string::npos);
    }
}

TEST_CASE("mpi: processes give the same bits as threads" * doctest::skip(!kHasMpi)) {
  const TemporaryFolder folder;
  write_mnist(folder.path(), 200, 10);
  const Words common = {"--data",    folder.path(), "--iterations", "4",         "--batch",    "10",
                        "--threads", "1",           "--quiet",      "--summary", "/dev/stdout"};
  for (const char* compress : {"none", "trunc16", "quant8"}) {
    const Words how = common + Words{"--compress", compress};
    const auto threads = [&](const Words& words) {
      return hash_in(run_program("mnist_mlp", how + Words{"--workers", "3"} + words));
    };
    const std::string d_sync = threads({"--algo", "d-sync"});
    CHECK(hash_in(run_mpi(3, "mnist_mlp", how)) == d_sync);  // the ranks are the workers
    CHECK(hash_in(run_mpi(5, "mnist_mlp", how + Words{"--algo", "ps-sync", "--servers", "2"})) ==
          d_sync);
    CHECK(hash_in(run_mpi(3, "mnist_mlp", how + Words{"--algo", "pipe-sgd", "--pipe-k", "1"})) ==
          d_sync);
    const std::string pipe = threads({"--algo", "pipe-sgd"});
    CHECK(pipe != d_sync);
    CHECK(hash_in(run_mpi(3, "mnist_mlp",
                          how + Words{"--algo", "pipe-sgd", "--link", "10gbit/20us"})) == pipe);
  }
}

TEST_CASE("mpi: the user's mistakes are said once, with status 2" * doctest::skip(!kHasMpi)) {
  const auto refusal = [](int ranks, const Words& words) {
    const ProgramResult r = run_mpi(ranks, "mnist_mlp", words);
    CHECK(r.status == 2);
    const std::size_t first = r.err.find("mnist_mlp: ");
    REQUIRE(first != std::string::npos);
    CHECK(r.err.find("mnist_mlp: ", first + 1) == std::string::npos);
    return r.err.substr(first, r.err.find('\n', first) - first);
  };
  CHECK(refusal(3, {"--batch", "0"}).find("--batch") != std::string::npos);
  CHECK(refusal(3, {"--workers", "2"}).find("does not fit the 3 processes") != std::string::npos);
  CHECK(refusal(1, {"--algo", "ps-sync"}).find("too few") != std::string::npos);
  CHECK(refusal(3, {"--data", "/nowhere"}).find("/nowhere does not exist") != std::string::npos);
  CHECK(refusal(3, {"--data", "synthetic", "--save", "/no/such/folder/file"}).find("--save") !=
        std::string::npos);  // a mistake that only one rank sees
  CHECK(refusal(2, {"--data", "synthetic", "--load", "/nowhere"}).find("/nowhere") !=
        std::string::npos);
}

TEST_CASE("mpi: the other MPI's mpiexec is noticed" * doctest::skip(!kHasMpi)) {
  // What Open MPI's sets, and MPICH's sets, without anybody behind it.
  const bool open_mpi = std::string(TANDEM_MPIEXEC).find("oversubscribe") != std::string::npos;
  const std::string prefix = open_mpi ? "PMI_" : "OMPI_COMM_WORLD_";
  ::setenv((prefix + "RANK").c_str(), "0", 1);
  ::setenv((prefix + "SIZE").c_str(), "4", 1);
  const ProgramResult r = run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "1"});
  ::unsetenv((prefix + "RANK").c_str());
  ::unsetenv((prefix + "SIZE").c_str());
  CHECK(r.status == 2);
  CHECK(r.err.find("by the mpiexec of another MPI") != std::string::npos);
}

TEST_CASE("mpi: a rank that is killed ends the job and is named" * doctest::skip(!kHasMpi)) {
  const ProgramResult r = disturb_rank_2("kill", SIGKILL, {});
  CAPTURE(r.err);
  CHECK(r.status != 0);
  CHECK(r.err.find("rank 2") != std::string::npos);
}

TEST_CASE("mpi: a rank that stalls is named after the timeout" * doctest::skip(!kHasMpi)) {
  const ProgramResult r = disturb_rank_2("stop", SIGSTOP, {"--stall-timeout", "1"});
  CAPTURE(r.err);
  CHECK(r.status == 1);
  CHECK(r.err.find("rank 2 ") != std::string::npos);
  CHECK(r.err.find("--stall-timeout") != std::string::npos);
}

TEST_CASE("mpi: a build without it says so" * doctest::skip(kHasMpi)) {
  ::setenv("PMI_RANK", "0", 1);
  ::setenv("PMI_SIZE", "4", 1);
  const ProgramResult r = run_program("mnist_mlp", {"--data", "synthetic", "--iterations", "1"});
  ::unsetenv("PMI_RANK");
  ::unsetenv("PMI_SIZE");
  CHECK(r.status == 2);
  CHECK(r.err.find("this build has no MPI") != std::string::npos);
}
