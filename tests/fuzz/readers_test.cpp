// The files in corpus/, whole and damaged. A name that begins with "good" is accepted, all others
// are refused.
#include "tests/fuzz/readers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/random.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace fs = std::filesystem;

namespace {

struct Input {
  std::string name, bytes;
};

std::vector<Input> corpus_of(const Reader& reader) {
  std::vector<Input> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path("tests/fuzz/corpus") / reader.name))
    inputs.push_back({entry.path().filename(), read_bytes(entry.path())});
  std::ranges::sort(inputs, {}, &Input::name);
  return inputs;
}

// A few bytes flipped, replaced, removed or repeated.
std::string damaged(std::string bytes, Random& random) {
  for (auto changes = 1 + random.below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random.below(bytes.size());
    const std::size_t some = std::min<std::size_t>(bytes.size() - at, 1 + random.below(8));
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 2:
        bytes.erase(at, some);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, some));
        break;
      case 4:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("fuzz: every reader accepts what is good, and refuses what is not in one sentence") {
  for (const Reader& reader : all_readers()) {
    CAPTURE(reader.name);
    bool any_good = false;
    for (const auto& [name, bytes] : corpus_of(reader)) {
      CAPTURE(name);
      const std::string message = message_of<UserError>([&] { reader.read(bytes); });
      const bool good = name.starts_with("good");
      any_good = any_good || good;
      CHECK(bytes.size() <= reader.most_bytes);
      if (good)
        CHECK(message == "");
      else
        CHECK(message != "");
      CHECK(message.find('\n') == std::string::npos);
    }
    CHECK(any_good);
  }
}

TEST_CASE("fuzz: damaged files are accepted or refused, and nothing else happens") {
  Random random(4);
  for (const Reader& reader : all_readers())
    for (const auto& [name, bytes] : corpus_of(reader))
      for (int i = 0; i < 100; ++i) {
        const std::string input = damaged(bytes, random);
        try {
          reader.read(input);
        } catch (const UserError&) {
        } catch (const std::exception& e) {
          FAIL_CHECK(fmt::format("{}: {}, damage {}: {}", reader.name, name, i, e.what()));
        }
      }
}
