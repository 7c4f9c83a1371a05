// The broken files that were left out of a run, as they are found while it reads. Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace tandem {

class SkippedFiles {
 public:
  // What is wrong with a file, naming it. The same is kept once, however often it is met.
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
