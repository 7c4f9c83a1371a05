// Files that only one process at a time may write. The lock is on the open file (flock). It ends
// when its process ends, for whatever reason, and on a shared file system it holds for all
// machines. A process id in a file's name could not do that: ids are reused, and each machine has
// its own.
#pragma once

#include <filesystem>

#include "train/descriptor.h"

namespace tandem {

enum class Lock {
  held,       // until the descriptor is closed
  elsewhere,  // another process has it
  unknown     // not a regular file, or its file system has no locks
};

Lock try_lock(const Descriptor& file);

// A file that is open for writing. It is locked unless another process holds the lock.
struct LockedFile {
  Descriptor file;
  Lock lock;
};
// Creates the file if needed. `flags` are added to those of open().
LockedFile open_locked(const std::filesystem::path& path, int flags = 0);

// An empty file whose lock shows that a process is using the path next to it. The destructor
// removes it.
class LockFile {
 public:
  explicit LockFile(const std::filesystem::path& path) : locked_(open_locked(path)) {}
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  bool is_held_elsewhere() const { return locked_.lock == Lock::elsewhere; }

 private:
  LockedFile locked_;
};

}  // namespace tandem
