// What the build knows about its version.
#include <doctest/doctest.h>

#include "tests/support.h"
#include "train/version.h"

namespace fs = std::filesystem;
using namespace tandem::test;

namespace {

// What a shell prints in a folder. Git must not look at anybody's settings.
std::string said_in(const fs::path& folder, const std::string& command) {
  const ProgramResult r =
      Process({"env", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
               "GIT_CEILING_DIRECTORIES=" + folder.parent_path().string(), "bash", "-c",
               "set -e; cd \"$0\"; " + command, folder})
          .wait();
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  return r.out;
}

}  // namespace

TEST_CASE("version: the commit is this repository's, marked if files differ") {
  const TemporaryFolder folder;
  const std::string commit = fs::absolute("scripts/detect").string() + " commit";
  CHECK(said_in(folder.path(), commit).empty());  // no repository: an unpacked archive

  said_in(folder.path(),
          "git init -q . && echo 1 >file && git add file && "
          "git -c user.name=a -c user.email=a@b commit -q -m first");
  const std::string hash = said_in(folder.path(), "git rev-parse --short=7 HEAD");
  CHECK(said_in(folder.path(), commit) == hash);
  said_in(folder.path(), "echo 2 >untracked");
  CHECK(said_in(folder.path(), commit) == hash);
  said_in(folder.path(), "echo 2 >file");
  CHECK(said_in(folder.path(), commit) == hash.substr(0, hash.size() - 1) + "-dirty\n");

  // An archive unpacked inside of somebody's repository.
  fs::create_directory(folder / "archive");
  CHECK(said_in(folder.path(), "cd archive; " + commit).empty());
}

TEST_CASE("version: the change log begins with this version") {
  const std::string log = read_bytes("CHANGELOG.md"), version = tandem::tandem_version();
  const std::size_t heading = log.find("\n## [");
  REQUIRE(heading != std::string::npos);
  const std::string number = version.substr(0, version.find('-'));
  CHECK(log.substr(heading).starts_with("\n## [" + number + "]"));
}
