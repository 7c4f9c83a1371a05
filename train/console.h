// What a program writes for people, and what it could not write.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace tandem {

// Collects the outputs that a program could not write. If one output fails (a full disk, a closed
// pipe), the work and the other outputs go on. The program ends with status 1.
class WriteFailures {
 public:
  explicit WriteFailures(std::string app) : app_(std::move(app)) {}  // for messages

  // Calls `write`. If it throws, records the reason and returns false. A later success clears the
  // failure.
  bool attempt(const std::string& output, const std::function<void()>& write);
  // The same during a run: the first failure is also reported on stderr at once.
  bool attempt_meanwhile(const std::string& output, const std::function<void()>& write);

  // One sentence with all failures and their reasons; empty if there are none.
  std::string message() const;
  // Throws SystemError with that sentence if there is one.
  void throw_if_any() const;

 private:
  std::string app_;
  std::map<std::string, std::string> reasons_;  // by output
  std::set<std::string> said_;
};

// Text for a person. After a write has failed, it writes nothing more.
class Console {
 public:
  // `stream` is stdout or stderr.
  Console(std::FILE* stream, WriteFailures& failures) : stream_(stream), failures_(failures) {}
  void print(const std::string& text);

 private:
  std::FILE* stream_;
  WriteFailures& failures_;
  bool works_ = true;
};

}  // namespace tandem
