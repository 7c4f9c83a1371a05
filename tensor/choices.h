// Remembers which way of computing something was chosen, most often because it was measured to be
// the fastest: once, for all workers of this process.
#pragma once

#include <map>
#include <mutex>

namespace tandem {

template <class Key, class Choice>
class Choices {
 public:
  // What has been chosen already, or null. Choices are never changed.
  const Choice* find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return find_locked(key);
  }

  // Calls choose() where nothing has been chosen. One worker chooses at a time: another one would
  // disturb its measuring, and most likely wants to know the same.
  template <class Choose>
  const Choice& find_or_choose(const Key& key, Choose&& choose) {
    const std::lock_guard lock(mutex_);
    if (const Choice* made = find_locked(key)) return *made;
    return made_.emplace(key, choose()).first->second;
  }

 private:
  const Choice* find_locked(const Key& key) const {
    const auto at = made_.find(key);
    return at == made_.end() ? nullptr : &at->second;
  }

  mutable std::mutex mutex_;
  std::map<Key, Choice> made_;
};

}  // namespace tandem
