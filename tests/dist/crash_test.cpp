#include "dist/transport/crash.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "tests/data/idx_files.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// What the libraries have done with the signals when main() begins, before doctest has them.
const std::map<int, struct sigaction> kAtStart = [] {
  std::map<int, struct sigaction> actions;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP})
    ::sigaction(signal, nullptr, &actions[signal]);
  return actions;
}();

// How a program ends that does this after the first lines of run_app(): the signal; SIGALRM if it
// does not end.
int signal_that_ends(const std::function<void()>& crash) {
  const NoCoreFiles none;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(STDERR_FILENO);
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(10);
    for (const auto& [signal, action] : kAtStart) ::sigaction(signal, &action, nullptr);
    take_signals_from_ucx();
    // Where there are threads, malloc takes a lock.
    std::thread(crash).join();
    std::_Exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// glibc's malloc: a freed chunk of this size lies in a list that the next larger request goes
// through, with the arena locked. The second word of a free chunk is a pointer of that list.
void crash_in_malloc() {
  // Through volatile variables: the compiler must not know what happens here.
  void* volatile freed = std::malloc(5000);
  void* volatile behind = std::malloc(5000);  // what is free behind would be joined with it
  std::free(freed);
  static_cast<volatile std::uintptr_t*>(freed)[1] = 16;
  behind = std::malloc(20000);
  std::free(behind);
}

// A program that trains for long, and has begun.
class Training {
 public:
  Training()
      : process_({path_of_program("mnist_mlp"), "--data", few_digits(), "--iterations", "1000000",
                  "--workers", "2", "--threads", "1"}) {
    process_.wait_until(
        [&] { return process_.out_so_far().find("network: ") != std::string::npos; });
  }
  int end_by(std::initializer_list<int> signals) {
    for (const int signal : signals) REQUIRE(::kill(process_.pid(), signal) == 0);
    return process_.wait_for_signal();
  }

 private:
  Process process_;
};

}  // namespace

TEST_CASE("crash: a segfault inside malloc ends the process at once" * doctest::skip(kSanitized)) {
  CHECK(signal_that_ends(crash_in_malloc) == SIGSEGV);
}

TEST_CASE("crash: every fatal signal ends the process" * doctest::skip(kSanitized)) {
  // SIGHUP has its own case: nohup may have started the tests.
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    CAPTURE(signal);
    CHECK(signal_that_ends([&] { ::raise(signal); }) == signal);
  }
}

TEST_CASE("crash: a library's changes to signal handlers at startup are undone") {
  const auto handler_of = [](int signal) {
    struct sigaction action {};
    REQUIRE(::sigaction(signal, nullptr, &action) == 0);
    return action.sa_handler;
  };
  for (const int signal : {SIGSEGV, SIGHUP}) {
    const auto before = handler_of(signal);
    {
      const KeptSignals kept;
      ::signal(signal, [](int) {});
      CHECK((handler_of(signal) != before));
    }
    CHECK((handler_of(signal) == before));
  }
}

TEST_CASE("crash: SIGHUP ends a program, unless it was started with nohup") {
  CHECK(Training().end_by({SIGHUP, SIGKILL}) == SIGHUP);
  ::signal(SIGHUP, SIG_IGN);  // as nohup does
  Training with_nohup;
  ::signal(SIGHUP, SIG_DFL);
  CHECK(with_nohup.end_by({SIGHUP, SIGKILL}) == SIGKILL);
}
