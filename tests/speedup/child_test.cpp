#include "speedup/child.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("speedup: a program's output is returned, and its failure is thrown with its message") {
  CHECK(tandem::run_program({"sh", "-c", "echo this; echo that >&2"}) == "this\n");
  const auto failure = [](const char* script) {
    return message_of<SystemError>([&] { tandem::run_program({"sh", "-c", script}); });
  };
  CHECK(failure("echo first >&2; echo 'sh: no luck' >&2; exit 3") == "no luck");
  CHECK(failure("echo 'sh: no luck' >&2; echo; echo '-----' >&2; exit 3") == "no luck");
  CHECK(failure("exit 3") == "sh ended with status 3");
  CHECK(failure("kill -9 $$") == "sh was killed by signal 9");
  CHECK(message_of<SystemError>([] { tandem::run_program({"/no/such/program"}); }) ==
        "cannot start /no/such/program");
}

TEST_CASE("speedup: folders of killed comparisons are removed, others not") {
  const TemporaryFolder folder;
  const char* set = std::getenv("TMPDIR");
  const std::string before = set ? set : "";
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const Scratch killed;
    write_bytes(killed / "trace.json", "large");
    std::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  std::filesystem::create_directory(folder / "tandem-speedup-backup");
  {
    const Scratch one;
    write_bytes(one / "summary.json", "kept");
    const Scratch two;
    CHECK(read_bytes(one / "summary.json") == "kept");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);
  }
  CHECK(std::filesystem::is_directory(folder / "tandem-speedup-backup"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
}
