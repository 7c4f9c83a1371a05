// The Makefile as a user sees it: what it builds by default, and its messages.
#include <doctest/doctest.h>

#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem::test;

namespace {

// Runs make as if it were started by hand, on a machine whose nvcc is a script that finds
// everything. `gpu=` and `gpu=1` stand for a machine without and with a GPU.
ProgramResult make(std::vector<std::string> arguments) {
  const TemporaryFolder tools;
  write_bytes(tools / "nvcc", "#!/bin/sh\necho release 99.9\n");
  fs::permissions(tools / "nvcc", fs::perms::owner_all);
  std::vector<std::string> words = {
      "env",       "-u", "MAKEFLAGS", "-u",
      "MAKELEVEL", "-u", "CUDA",      "-u",
      "CUDA_ARCH", "-u", "SAN",       "PATH=" + tools.path().string() + ":" + std::getenv("PATH"),
      "make"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Process(words).wait();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("make: CUDA is built if there is a GPU, or on request") {
  CHECK(has(make({"-s", "gpu=1", "detected"}).out, "CUDA 99.9 for sm_80"));
  CHECK(has(make({"-s", "gpu=", "detected"}).out, "CUDA left out: no GPU here; CUDA=1 builds it"));
  CHECK(has(make({"-s", "gpu=", "CUDA=1", "detected"}).out, "CUDA 99.9 for sm_80"));
  CHECK(has(make({"-s", "gpu=1", "CUDA=0", "detected"}).out, "CUDA left out: CUDA=0"));
}

TEST_CASE("make: targets that need a GPU say why this build cannot run them") {
  const std::string why = ": this build has no CUDA backend (no GPU here; CUDA=1 builds it)";
  const ProgramResult r = make({"gpu=", "MAKE=false", "check-gpu"});
  CHECK(r.status == 2);
  CHECK(r.out.empty());
  CHECK(r.err.starts_with("check-gpu" + why + "\n"));
  for (const char* target : {"tables-gpu", "bench-gpu", "bench-peers-gpu"})
    CHECK(has(make({"-n", "gpu=", "MAKE=false", target}).out, target + why));
}

// make calls itself for these; MAKE=echo shows how.
TEST_CASE("make: check with CUDA keeps it out of the sanitized tests") {
  const std::string said = make({"-n", "CUDA=1", "MAKE=echo", "check"}).out;
  CHECK(has(said, "\n--no-print-directory tests\n"));
  CHECK(has(said, "\n--no-print-directory SAN=address,undefined CUDA=0 tests\n"));
}

TEST_CASE("make: help says how long slow targets take") {
  const std::string help = make({"-s", "help"}).out;
  for (const char* target :
       {"make  ", "make demo ", "make tables ", "make check ", "make bench "}) {
    CAPTURE(target);
    const std::size_t at = help.find(target);
    REQUIRE(at != std::string::npos);
    // Some are told in two lines.
    CHECK(has(help.substr(at, help.find("\nmake ", at + 1) - at), "minutes"));
  }
}

TEST_CASE("make: a target builds only the programs that it runs") {
  const auto built_by = [](const char* target) {
    return make({"-n", "CUDA=1", "MAKE=echo", target}).out;
  };
  CHECK(has(built_by("demo"), "\n--no-print-directory build/mnist_mlp build/speedup\n"));
  CHECK(has(built_by("tables"),
            "\n--no-print-directory build/speedup build/mnist_mlp build/cifar_convex\n"));
}
