#include "train/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support.h"
#include "train/file_lock.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("files: a file is replaced as a whole and nothing else is left") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  write_file(folder / "file", "new and longer");
  CHECK(read_bytes(folder / "file") == "new and longer");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: a failure midway keeps the old file, leaves nothing else and names the path") {
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

TEST_CASE("files: non-regular files are written directly") {
  write_file("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("files: a path that cannot be written is refused in advance, with the option") {
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

TEST_CASE("files: a link to a file that does not exist yet is followed too") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_bytes(folder / "real") == "new");
}

TEST_CASE("files: a read-only file is refused, even if it could be replaced") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "kept");
  std::filesystem::permissions(folder / "file", std::filesystem::perms::owner_read);
  CHECK(message_of<UserError>([&] { check_writable("--save", folder / "file"); }) ==
        "--save: " + (folder / "file").string() +
            " is read-only; choose another file, or make it writable");
  CHECK(read_bytes(folder / "file") == "kept");
}

TEST_CASE("files: two paths to one file are detected, through links, folders and names") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directory(folder / "inner");
  fs::create_directory_symlink(folder / "inner", folder / "inner_link");
  const auto check_all = [&] {
    CHECK(is_same_file(folder / "a", folder / "a"));
    CHECK(is_same_file(folder / "a", folder / "./a"));
    CHECK(is_same_file(folder / "inner/../a", folder / "a"));
    CHECK(is_same_file(folder / "inner/b", folder / "inner_link/b"));
    CHECK(is_same_file(folder / "to_a", folder / "a"));
    CHECK(is_same_file(folder / "to_to_a", folder / "inner_link/../a"));
    CHECK(is_same_file(folder / "a", fs::relative(folder / "a")));
    CHECK_FALSE(is_same_file(folder / "a", folder / "inner/b"));
    CHECK_FALSE(is_same_file(folder / "b", folder / "inner/b"));
  };
  fs::create_symlink("a", folder / "to_a");
  fs::create_symlink(folder / "to_a", folder / "to_to_a");
  check_all();  // nothing is there yet
  write_bytes(folder / "a", "");
  write_bytes(folder / "inner/b", "");
  check_all();
  fs::create_hard_link(folder / "a", folder / "hard");
  CHECK(is_same_file(folder / "a", folder / "hard"));
  CHECK_FALSE(is_same_file("/dev/null", "/dev/null"));  // all may write there
}

TEST_CASE("files: a killed run's leftovers are removed by the next run, and nothing else") {
  const TemporaryFolder folder;
  write_bytes(folder / "file.tandem-tmp-123", "left behind");
  write_bytes(folder / "file.tandem-tmp-124", "still being written");
  const Descriptor busy(folder / "file.tandem-tmp-124", O_WRONLY);
  REQUIRE(try_lock(busy) == Lock::held);
  const std::vector<std::string> others = {"file.tandem-tmp-",
                                           "file.tandem-tmp-12x",
                                           "file.tmp.123",
                                           "file.tandem-tmp-1.txt",
                                           "file2",
                                           "other.tandem-tmp-123"};
  for (const std::string& name : others) write_bytes(folder / name, "somebody's");
  std::filesystem::create_directory(folder / "file.tandem-tmp-5");
  std::filesystem::create_symlink("file2", folder / "file.tandem-tmp-6");

  write_file(folder / "file", "new");
  CHECK_FALSE(std::filesystem::exists(folder / "file.tandem-tmp-123"));
  CHECK(read_bytes(folder / "file.tandem-tmp-124") == "still being written");
  for (const std::string& name : others) CHECK(read_bytes(folder / name) == "somebody's");
  CHECK(std::filesystem::is_directory(folder / "file.tandem-tmp-5"));
  CHECK(std::filesystem::is_symlink(folder / "file.tandem-tmp-6"));

  // Trying a path removes them, too: before a training, not only after it.
  write_bytes(folder / "file.tandem-tmp-123", "left behind");
  check_writable("--save", folder / "file");
  CHECK_FALSE(std::filesystem::exists(folder / "file.tandem-tmp-123"));
}

TEST_CASE("files: a process that is killed while it writes leaves a file that is not locked") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    // It is killed by the limit of its files' size, with a part written.
    const rlimit small{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    std::signal(SIGXFSZ, SIG_DFL);
    write_file(folder / "file", std::string(5000, 'x'));
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  write_file(folder / "file", "new");
  CHECK(read_bytes(folder / "file") == "new");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: one process at a time holds a lock file, which is removed at its end") {
  const TemporaryFolder folder;
  {
    const LockFile lock(folder / "lock");
    CHECK_FALSE(lock.is_held_elsewhere());
    CHECK(
        LockFile(folder / "lock").is_held_elsewhere());  // another open file is as another process
    CHECK(std::filesystem::exists(folder / "lock"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  write_bytes(folder / "lock", "");  // of a process that was killed
  CHECK_FALSE(LockFile(folder / "lock").is_held_elsewhere());
}
