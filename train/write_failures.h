// What a program could not write. One output that fails (a full disk, a closed pipe) takes neither
// the work nor the other outputs with it: all are tried, and the program ends with status 1.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

namespace tandem {

class WriteFailures {
 public:
  explicit WriteFailures(std::string app) : app_(std::move(app)) {}  // for messages

  // Calls `write`; returns false and notes why if it throws. A later success makes up for it.
  bool attempt(const std::string& output, const std::function<void()>& write);
  // The same while work goes on: also says so at once on stderr, the first time.
  bool attempt_meanwhile(const std::string& output, const std::function<void()>& write);

  // One sentence with all that failed, and why; empty if nothing did.
  std::string message() const;
  // Throws SystemError with it.
  void throw_if_any() const;

 private:
  std::string app_;
  std::map<std::string, std::string> reasons_;  // by output
  std::set<std::string> said_;
};

}  // namespace tandem
