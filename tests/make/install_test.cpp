// Programs outside this tree can use what is installed.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/json.h"
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

// Installs Tandem, and builds an example from a copy of its folder, with nothing of the tree at
// hand.
struct Outside {
  explicit Outside(const std::string& example) {
    REQUIRE(install("", prefix.path()).status == 0);
    fs::copy("examples/" + example, folder.path(), fs::copy_options::recursive);
    ::setenv("PKG_CONFIG_PATH", (prefix / "lib/pkgconfig").c_str(), 1);
    const ProgramResult built = shell("cd \"$0\"; " TANDEM_CXX
                                      " -std=c++20 -Wall -Wextra -Werror main.cpp $(pkg-config "
                                      "--cflags --libs tandem) -o program",
                                      folder.path());
    ::unsetenv("PKG_CONFIG_PATH");
    CAPTURE(built.err);
    REQUIRE(built.status == 0);
  }

  // The program's standard output.
  std::string run(const std::string& arguments) const {
    const ProgramResult ran = shell("cd \"$0\"; ./program --quiet " + arguments, folder.path());
    CAPTURE(ran.err);
    CHECK(ran.status == 0);
    return ran.out;
  }

  TemporaryFolder prefix, folder;
};

}  // namespace

TEST_CASE("install: a program outside the tree trains its own model on its own data") {
  const Outside stripes("stripes");
  for (const char* arguments : {"", "--workers 2 --algo pipe-sgd --compress trunc16"})
    CHECK(stripes.run(arguments) == "100% of the test images are classified correctly\n");

  const ProgramResult program = Process({stripes.prefix / "bin/mnist_mlp", "--version"}).wait();
  CHECK(program.status == 0);
  CHECK(program.out.starts_with("tandem "));
}

TEST_CASE("install: LeNet with a user-defined activation learns digits") {
  const Outside lenet("lenet");
  for (const char* workers : {"", "--workers 2 --algo pipe-sgd"}) {
    const auto summary = json_of(lenet.run(
        "--data synthetic --batch 50 --iterations 100 --summary - " + std::string(workers)));
    CHECK(summary["parameters"] == 61706);
    CHECK(summary["test_accuracy"] > 0.9);
  }
}

TEST_CASE("install: a package can be staged with DESTDIR") {
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
