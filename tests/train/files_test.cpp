#include "train/files.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

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

TEST_CASE("files: a failure midway keeps the old file, leaves no rubbish and names the path") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  // Files of this process may not grow beyond 1,000 bytes for a moment.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message =
      message_of<SystemError>([&] { write_file(folder / "file", std::string(5000, 'x')); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);

  CHECK(message.starts_with("cannot write " + (folder / "file").string()));
  CHECK(message.ends_with("File too large"));
  CHECK(read_bytes(folder / "file") == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: links are followed, not replaced") {
  const TemporaryFolder folder;
  write_file(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  write_file(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_bytes(folder / "real") == "new");
}

TEST_CASE("files: what is not a regular file is written directly") {
  write_file("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("files: a path that cannot be written is refused beforehand, with the option") {
  const TemporaryFolder folder;
  check_writable("--save", folder / "file");
  check_writable("--save", "/dev/null");
  CHECK(std::filesystem::is_empty(folder.path()));  // trying leaves nothing behind
  const auto complaint = [&](const std::string& path) {
    const std::string message = message_of<UserError>([&] { check_writable("--save", path); });
    CHECK(message.starts_with("--save: "));
    return message;
  };
  CHECK(complaint(folder.path()).ends_with("is a folder"));
  CHECK(complaint(folder / "none" / "file").ends_with("No such file or directory"));
  CHECK(complaint(folder / std::string(250, 'x')).ends_with("File name too long"));
}

TEST_CASE("statistics: mean and median, which of two values is between them") {
  CHECK(mean({}) == 0);
  CHECK(mean({1, 2, 6}) == 3);
  CHECK(median({}) == 0);
  CHECK(median({3, 1}) == 2);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 10}) == 3.5);
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
