// Jobs under mpiexec of which a rank dies or stops.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "tests/apps/mpiexec.h"
#include "tests/data/idx_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// The process of a rank in the job whose environment holds this mark, or its watcher's; 0 if it is
// not there yet.
pid_t find_rank(const std::string& mark, int rank, const std::string& name = "mnist_mlp") {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_bytes(entry.path() / "comm") != name + "\n") continue;
    const std::string environment = read_bytes(entry.path() / "environ");
    const auto has = [&](const std::string& variable) {
      return environment.find(variable + '\0') != std::string::npos;
    };
    if (has("TANDEM_TEST_MARK=" + mark) && (has("PMI_RANK=" + std::to_string(rank)) ||
                                            has("OMPI_COMM_WORLD_RANK=" + std::to_string(rank))))
      return static_cast<pid_t>(std::stol(pid));
  }
  return 0;
}

pid_t parent_of(pid_t process) {
  const std::string status = read_bytes("/proc/" + std::to_string(process) + "/status");
  const std::string name = "PPid:\t";
  const std::size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::stoi(status.substr(at + name.size()));
}

// A job of so many ranks; it would run for long, unless the arguments say something else.
class LongJob {
 public:
  // The process is part of the mark, so that two runs of the tests at once do not find each other's
  // ranks.
  LongJob(int ranks, const std::string& name, const Words& arguments)
      : mark_(fmt::format("{} of process {}", name, ::getpid())), mpiexec_([&] {
          ::setenv("TANDEM_TEST_MARK", mark_.c_str(), 1);
          return under_mpiexec(
              ranks, "mnist_mlp",
              Words{"--data", few_digits(), "--batch", "50", "--iterations", "1000000"} +
                  arguments);
        }()) {
    ::unsetenv("TANDEM_TEST_MARK");
  }

  void wait_until(const std::function<bool()>& holds) { mpiexec_.wait_until(holds); }
  void wait_until_it_says(const char* text) {
    wait_until([&] { return mpiexec_.out_so_far().find(text) != std::string::npos; });
  }
  void wait_until_it_trains() { wait_until_it_says("network: MPI"); }
  pid_t wait_for_watcher_of(int rank) {
    pid_t watcher = 0;
    wait_until([&] { return (watcher = find_rank(mark_, rank, "rank-watcher")) > 0; });
    return watcher;
  }
  pid_t process_of(int rank) const {
    const pid_t process = find_rank(mark_, rank);
    REQUIRE(process > 0);
    return process;
  }
  void send(int rank, int signal) { REQUIRE(::kill(process_of(rank), signal) == 0); }
  // How the job ends, which must not take long.
  ProgramResult end() {
    const auto begin = Clock::now();
    const ProgramResult result = mpiexec_.wait();
    CHECK(seconds_between(begin, Clock::now()) < 10);
    return result;
  }

 private:
  std::string mark_;
  Process mpiexec_;
};

// What a job of four ranks says when something is done to rank 2 while it trains.
ProgramResult disturb_rank_2(const std::string& name, int signal, const Words& arguments) {
  LongJob job(4, name, arguments);
  job.wait_until_it_trains();
  job.send(2, signal);
  return job.end();
}

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("mpi: a rank that is killed ends the job and is named" * doctest::skip(!kHasMpi)) {
  const ProgramResult r = disturb_rank_2("kill", SIGKILL, {});
  CAPTURE(r.err);
  CHECK(r.status != 0);
  CHECK(r.err.find("rank 2") != std::string::npos);
}

TEST_CASE("mpi: a rank that crashes ends the job, and its watcher says why" *
          doctest::skip(!kHasMpich)) {
  const NoCoreFiles none;
  // A sanitizer leaves these signals to others; UCX does not leave the first one.
  for (const int signal : {SIGILL, SIGABRT}) {
    CAPTURE(signal);
    // With small batches, other ranks read this one's memory most of the time. UCX aborts them
    // then.
    LongJob job(4, "crash" + std::to_string(signal), {"--batch", "4"});
    job.wait_until_it_says("epoch 1/");
    job.send(2, signal);
    const ProgramResult r = job.end();
    CAPTURE(r.err);
    CHECK(r.status == 1);
    const std::string reason = signal == SIGILL ? "Illegal instruction" : "Aborted";
    CHECK(r.err.find("has died (" + reason + "); the job ends\n") != std::string::npos);
    CHECK(r.err.starts_with("mnist_mlp: rank 2 (process "));
    CHECK(lines_of(r.err) == 1);
  }
}

TEST_CASE("mpi: a rank that is killed at the start is named" * doctest::skip(!kHasMpich)) {
  // While the ranks begin, they talk to mpiexec, which then looks for children that have died. It
  // must not be the first to see it.
  for (int i = 0; i < 3; ++i) {
    LongJob job(4, "early" + std::to_string(i), {});
    const pid_t watcher = job.wait_for_watcher_of(2), rank = job.process_of(2);
    CHECK(parent_of(rank) == watcher);
    REQUIRE(::kill(rank, SIGKILL) == 0);
    const ProgramResult r = job.end();
    CAPTURE(r.err);
    CHECK(r.status == 1);
    CHECK(r.err.find("mnist_mlp: rank 2 (process ") != std::string::npos);
    CHECK(r.err.find("[mpiexec@") == std::string::npos);
  }
}

TEST_CASE("mpi: when all ranks wait, the stopped one is named, once" * doctest::skip(!kHasMpi)) {
  // Where Open MPI chooses libfabric, a rank that sends to a stopped one is stuck in MPI as well.
  if (kHasOpenMpi) ::setenv("OMPI_MCA_pml", "ob1", 0);
  const auto silent_rank = [](const ProgramResult& r) {
    CAPTURE(r.err);
    CHECK(r.status == 1);
    const std::string before = "mnist_mlp: rank ";
    const std::size_t first = r.err.find(before);
    REQUIRE(first != std::string::npos);
    CHECK(r.err.find("mnist_mlp: ", first + 1) == std::string::npos);
    CHECK(r.err.find(" has been silent for 1 s (--stall-timeout); the job ends\n") ==
          first + before.size() + 1);
    return r.err[first + before.size()];
  };
  const Words soon = {"--stall-timeout", "1"};
  CHECK(silent_rank(disturb_rank_2("stop", SIGSTOP, soon)) == '2');
  // Workers that wait for a server, which waits for a worker.
  const Words with_server = soon + Words{"--algo", "ps-sync", "--servers", "1"};
  CHECK(silent_rank(disturb_rank_2("link", SIGSTOP, with_server + Words{"--link", "1gbe"})) == '2');
  // Workers that wait for the leader of their node, which waits for one of them.
  const Words nodes_first = with_server + Words{"--aggregate", "nodes-first"};
  CHECK(silent_rank(disturb_rank_2("node", SIGSTOP, nodes_first)) == '2');

  // A server waits for as long as workers compute; not for workers that are stopped.
  LongJob job(3, "workers", with_server);
  job.wait_until_it_trains();
  job.send(0, SIGSTOP);
  job.send(1, SIGSTOP);
  CHECK(silent_rank(job.end()) < '2');
}

TEST_CASE("mpi: at the end ranks wait for one that writes, but not for a stopped one" *
          doctest::skip(!kHasMpi)) {
  // Rank 0 cannot end while nobody reads its trace.
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int end = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(end >= 0);
  int full = ::fcntl(end, F_SETPIPE_SZ, 4096);
  REQUIRE(full > 0);
  LongJob job(3, "end", {"--iterations", "20", "--stall-timeout", "1", "--trace", pipe});
  const auto bytes_in_pipe = [&] {
    int bytes = 0;
    REQUIRE(::ioctl(end, FIONREAD, &bytes) == 0);
    return bytes;
  };
  job.wait_until([&] { return bytes_in_pipe() == full; });
  ::usleep(2'500'000);  // longer than the timeout
  job.send(0, SIGSTOP);
  const ProgramResult r = job.end();
  ::close(end);
  CAPTURE(r.err);
  CHECK(r.status == 1);
  CHECK(r.err.find("mnist_mlp: rank 0 has been silent for 1 s (--stall-timeout); the job ends\n") !=
        std::string::npos);
}

TEST_CASE("mpi: a rank that dies or stops among many open messages is named" *
          doctest::skip(!kHasMpi)) {
  if (kHasOpenMpi) ::setenv("OMPI_MCA_pml", "ob1", 0);
  const auto end = [](int signal) {
    // 317 slices per iteration.
    LongJob job(4, "slices" + std::to_string(signal),
                {"--batch", "8", "--algo", "p3", "--slice", "2048", "--link", "1gbe",
                 "--verify-every", "2", "--stall-timeout", "1"});
    job.wait_until_it_says("plan: ");
    job.send(2, signal);
    return job.end();
  };
  const ProgramResult killed = end(SIGKILL);
  CAPTURE(killed.err);
  CHECK(killed.status != 0);
  CHECK(killed.err.find("rank 2") != std::string::npos);
  const ProgramResult stopped = end(SIGSTOP);
  CAPTURE(stopped.err);
  CHECK(stopped.status == 1);
  CHECK(stopped.err.find("mnist_mlp: rank 2 has been silent for 1 s (--stall-timeout); the job "
                         "ends\n") != std::string::npos);
}
