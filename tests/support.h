// Helpers for tests.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "tensor/backend.h"

namespace tandem::test {

// `count` numbers between -1 and 1, none of them near 0 (where ReLU has no derivative).
std::vector<double> random_values(std::int64_t count, std::uint64_t seed);
Tensor random_tensor(const Shape& shape, std::uint64_t seed, Dtype dtype, const Device& device);

// Compares the gradients of `f` with central differences, in double precision, for every element
// of every input. f's result may have any shape. `tolerance` is relative to the largest gradient.
using Function = std::function<Var(Tape& tape, const std::vector<Var>& inputs)>;
void check_gradients(const std::vector<Shape>& inputs, const Function& f, double tolerance = 1e-7);

// With sanitizers, code is many times slower and has its own malloc.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true, kSanitized = true;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false, kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
inline constexpr bool kSanitized = kThreadSanitizer || __has_feature(address_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false, kSanitized = false;
#endif

// A folder of its own that goes away at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_bytes(const std::filesystem::path& path, const std::string& bytes, bool gzip = false);
std::string read_bytes(const std::filesystem::path& path);

// Runs a program that was built beside the tests.
struct ProgramResult {
  int status;
  std::string out, err;
};
ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments);

// A program under way, started by its path or found in the PATH.
class Process {
 public:
  // `out` is an open file that becomes its standard output; -1: it is kept for the result.
  explicit Process(std::vector<std::string> words, int out = -1);
  ~Process();  // ends it, if it has not ended
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  std::string out_so_far() const;
  // Fails if the process ends before this holds, or if it takes minutes.
  void wait_until(const std::function<bool()>& holds);
  ProgramResult wait();
  int wait_for_signal();  // that ends it

 private:
  TemporaryFolder folder_;
  std::string name_;
  pid_t pid_ = 0;
};

// While this lives, programs that are made to crash leave no core files.
class NoCoreFiles {
 public:
  NoCoreFiles();
  ~NoCoreFiles();

 private:
  rlimit before_{};
};

// Of a program that was built beside the tests.
std::string path_of_program(const std::string& name);

// The message of the exception of type E that f throws; empty if it throws none.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

// The message of the UserError with which `read` refuses a file that has this text. The path in it
// is cut down to the file's name.
template <class F>
std::string refusal_of_file(const std::string& name, const std::string& text, F&& read) {
  const TemporaryFolder folder;
  write_bytes(folder / name, text);
  const std::string message = message_of<UserError>([&] { read(folder / name); });
  return message.substr(message.find_last_of('/') + 1);
}

}  // namespace tandem::test
