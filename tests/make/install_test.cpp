// What is installed serves programs outside of this tree.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem::test;

namespace {

ProgramResult shell(const std::string& command, const fs::path& folder) {
  return Process({"bash", "-c", "set -eo pipefail; " + command, folder}).wait();
}

fs::path build_folder() { return fs::path(path_of_program("")).parent_path(); }

// What scripts/install does for `make install`, without building anything.
ProgramResult install(const std::string& options, const fs::path& prefix,
                      const fs::path& staging = "") {
  return Process({"env", "DESTDIR=" + staging.string(), "bash", "-c",
                  "scripts/install " + options + " \"$0\" \"$1\"", build_folder(), prefix})
      .wait();
}

}  // namespace

TEST_CASE("install: a program outside of the tree trains its own model on its own data") {
  const TemporaryFolder prefix, outside;
  REQUIRE(install("", prefix.path()).status == 0);
  // Nothing of the tree is at hand where it is built.
  fs::copy("examples/stripes/main.cpp", outside / "main.cpp");
  ::setenv("PKG_CONFIG_PATH", (prefix / "lib/pkgconfig").c_str(), 1);
  const ProgramResult built = shell(
      "cd \"$0\"; " TANDEM_CXX
      " -std=c++20 -Wall -Wextra -Werror main.cpp $(pkg-config --cflags --libs tandem) -o stripes",
      outside.path());
  ::unsetenv("PKG_CONFIG_PATH");
  CAPTURE(built.err);
  REQUIRE(built.status == 0);
  for (const char* arguments : {"", "--workers 2 --algo pipe-sgd --compress trunc16"}) {
    const ProgramResult ran =
        shell("cd \"$0\"; ./stripes --quiet " + std::string(arguments), outside.path());
    CAPTURE(ran.err);
    CHECK(ran.status == 0);
    CHECK(ran.out == "100% of the test images are classified correctly\n");
  }

  const ProgramResult program = Process({prefix / "bin/mnist_mlp", "--version"}).wait();
  CHECK(program.status == 0);
  CHECK(program.out.starts_with("tandem "));
}

TEST_CASE("install: a package is put together elsewhere than where it will be") {
  const TemporaryFolder staging;
  REQUIRE(install("", "/opt/tandem", staging.path()).status == 0);
  const fs::path root = staging / "opt/tandem";
  const std::string description = read_bytes(root / "lib/pkgconfig/tandem.pc");
  CHECK(description.starts_with("prefix=/opt/tandem\n"));
  CHECK(description.find(staging.path()) == std::string::npos);
  CHECK(fs::exists(root / "share/doc/tandem/LICENSE"));
  CHECK(fs::exists(root / "include/tandem/train/trainer.h"));

  write_bytes(root / "bin/of_somebody_else", "");
  REQUIRE(install("--remove", "/opt/tandem", staging.path()).status == 0);
  std::vector<fs::path> left;
  for (const auto& entry : fs::recursive_directory_iterator(staging.path()))
    if (!entry.is_directory()) left.push_back(entry.path().filename());
  CHECK(left == std::vector<fs::path>{"of_somebody_else"});
}
