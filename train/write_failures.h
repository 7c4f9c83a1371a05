// Collects the outputs that a program could not write. If one output fails (a full disk, a closed
// pipe), the work and the other outputs go on. The program ends with status 1.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

namespace tandem {

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

}  // namespace tandem
