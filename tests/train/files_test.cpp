#include "train/files.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/support.h"
#include "train/statistics.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("files: a file is replaced as a whole and nothing else is left") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  write_file(folder / "file", "new and longer");
  CHECK(read_bytes(folder / "file") == "new and longer");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: a failure keeps the old file, leaves no rubbish and names the path") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "target");  // cannot be replaced by a file
  write_bytes(folder / "target" / "inside", "x");
  CHECK_THROWS_AS(write_file(folder / "none" / "file", "x"), SystemError);
  CHECK(message_of<SystemError>([&] {
          write_file(folder / "none" / "file", "x");
        }).find((folder / "none" / "file").string()) != std::string::npos);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: what is not a regular file is written directly") {
  write_file("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("files: a path that cannot be written is refused beforehand, with the option") {
  const TemporaryFolder folder;
  check_writable("--save", folder / "file");
  check_writable("--save", "file-in-this-folder");
  check_writable("--save", "/dev/null");
  CHECK(message_of<UserError>([&] {
          check_writable("--save", folder.path());
        }).starts_with("--save: "));
  CHECK(message_of<UserError>([&] {
          check_writable("--save", folder / "none" / "file");
        }).ends_with("none does not exist"));
}

TEST_CASE("statistics: quantiles by nearest rank") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(quantile({3}, 0.95) == 3);
  CHECK(quantile({5, 1, 3}, 0.5) == 3);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 3, 2}, 0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 1) == 4);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  CHECK(quantile(hundred, 0.95) == 95);
}
