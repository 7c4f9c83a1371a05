// Collects the broken files that a run has skipped. Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace tandem {

class SkippedFiles {
 public:
  // Adds a message that names the file and its defect. A repeated message is kept once.
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.insert(what);
  }
  std::set<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> all_;
};

}  // namespace tandem
