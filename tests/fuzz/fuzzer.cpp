// The program of `make fuzz`: libFuzzer calls a reader with inputs that it makes from a corpus. A
// reader may refuse an input with a UserError. Everything else is a finding: another exception, a
// report of a sanitizer, too much memory, too much time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "tests/fuzz/readers.h"

namespace {

const tandem::test::Reader* reader = nullptr;

}  // namespace

// libFuzzer leaves options with two dashes to us. --list prints all readers, for scripts/fuzz.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    for (const tandem::test::Reader& each : tandem::test::all_readers()) {
      if (word == "--list")
        std::printf("%s %zu %d\n", each.name.c_str(), each.most_bytes, each.most_mb);
      if (word == "--reader=" + each.name) reader = &each;
    }
    if (word == "--list") std::exit(0);
  }
  if (reader) return 0;
  std::fputs("give --reader=NAME; --list prints the names\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    reader->read({reinterpret_cast<const char*>(data), size});
  } catch (const tandem::UserError&) {
  }
  return 0;
}
