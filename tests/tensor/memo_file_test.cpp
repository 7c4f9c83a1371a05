#include "tensor/memo_file.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "base/thread.h"
#include "tensor/choices.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("memo file: later runs find what one run adds; the last value counts") {
  const TemporaryFolder folder;
  const auto path = folder / "new" / "memo.txt";
  const MemoFile first(path), beside_it(path);
  CHECK(!first.find("a"));
  first.add("a", "1 2");
  first.add("b", "");
  beside_it.add("c", "3");
  first.add("a", "4");
  CHECK(!first.find("a"));
  const MemoFile later(path);
  CHECK(later.find("a") == "4");
  CHECK(later.find("b") == "");
  CHECK(later.find("c") == "3");
  CHECK(!later.find("d"));
  CHECK_THROWS_AS(first.add("a\tb", "c"), std::logic_error);
  CHECK_THROWS_AS(first.add("a", "b\n"), std::logic_error);
}

TEST_CASE("memo file: damaged lines are ignored, the others are read") {
  const TemporaryFolder folder;
  const auto path = folder / "memo.txt";
  {
    const MemoFile file(path);
    for (const char* key : {"a", "b", "c"}) file.add(key, "1");
  }
  std::string text = read_bytes(path);
  text[text.find("b\t1") + 2] = '2';
  text.resize(text.size() - 3);  // the end of c's
  write_bytes(path, text + "\nno tabs\none\ttab\n\t\t\n");
  const MemoFile file(path);
  CHECK(file.find("a") == "1");
  CHECK(!file.find("b"));
  CHECK(!file.find("c"));
  CHECK(!file.find(""));
  CHECK(!file.find("one"));
}

TEST_CASE("memo file: an entry is kept although the file ends within a line") {
  const TemporaryFolder folder;
  const auto path = folder / "memo.txt";
  MemoFile(path).add("a", "1");
  const std::string text = read_bytes(path);
  for (const std::size_t cut : {1, 5}) {  // only the line break; a part of the hash
    write_bytes(path, text.substr(0, text.size() - cut));
    MemoFile(path).add("b", "2");
    CHECK(MemoFile(path).find("a").has_value() == (cut == 1));
    CHECK(MemoFile(path).find("b") == "2");
  }
}

TEST_CASE("memo file: without a path, or if it cannot be written, nothing is stored") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "not a folder");
  for (const auto& path : {std::filesystem::path(), folder / "file" / "memo.txt"}) {
    MemoFile(path).add("a", "1");
    CHECK(!MemoFile(path).find("a"));
  }
}

TEST_CASE("memo file: the folder is TANDEM_CACHE, or in the user's cache") {
  const auto with = [](const char* cache, const char* caches, const char* home) {
    const auto set = [](const char* name, const char* value) {
      value ? ::setenv(name, value, 1) : ::unsetenv(name);
    };
    const auto now = [](const char* name) {
      const char* value = std::getenv(name);
      return value ? std::optional<std::string>(value) : std::nullopt;
    };
    const char* const names[] = {"TANDEM_CACHE", "XDG_CACHE_HOME", "HOME"};
    const std::optional<std::string> before[] = {now(names[0]), now(names[1]), now(names[2])};
    set(names[0], cache);
    set(names[1], caches);
    set(names[2], home);
    const std::string folder = cache_folder();
    for (int i = 0; i < 3; ++i) set(names[i], before[i] ? before[i]->c_str() : nullptr);
    return folder;
  };
  CHECK(with("/c", "/x", "/h") == "/c");
  CHECK(with("", "/x", "/h").empty());
  CHECK(with(nullptr, "/x", "/h") == "/x/tandem");
  CHECK(with(nullptr, "not absolute", "/h") == "/h/.cache/tandem");
  CHECK(with(nullptr, nullptr, "/h") == "/h/.cache/tandem");
  CHECK(with(nullptr, nullptr, nullptr).empty());
}

TEST_CASE("choices: what one worker has chosen all find, and it is chosen once") {
  Choices<int, std::string> choices;
  CHECK(choices.find(1) == nullptr);
  CHECK_THROWS_AS(
      choices.find_or_choose(1, []() -> std::string { throw std::runtime_error("no memory"); }),
      std::runtime_error);
  CHECK(choices.find(1) == nullptr);
  int chosen = 0;
  {
    std::vector<Thread> workers;
    for (int i = 0; i < 4; ++i)
      workers.push_back(start_thread("worker", Work::computes, [&] {
        choices.find_or_choose(1, [&] { return std::to_string(++chosen); });
      }));
  }
  CHECK(chosen == 1);
  REQUIRE(choices.find(1));
  CHECK(*choices.find(1) == "1");
  CHECK(choices.find(2) == nullptr);
}
