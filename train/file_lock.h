// Files that one process at a time may write. A lock is on the open file (flock): it ends with the
// process that holds it, however that ends, and on a shared file system it holds for all machines.
// So it tells what a process's number in a file's name cannot: numbers are given out again, and
// another machine has its own.
#pragma once

#include <filesystem>

#include "train/descriptor.h"

namespace tandem {

enum class Lock {
  held,       // until the descriptor is closed
  elsewhere,  // another process has it
  unknown     // it is no regular file, or its file system has no locks
};

Lock try_lock(const Descriptor& file);

// A file that is open for writing, and locked unless another process has locked it.
struct LockedFile {
  Descriptor file;
  Lock lock;
};
// Makes the file if it is not there. `flags` are further ones of open().
LockedFile open_locked(const std::filesystem::path& path, int flags = 0);

// A file that does nothing but say that somebody is at work beside it. It goes away at the end.
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
