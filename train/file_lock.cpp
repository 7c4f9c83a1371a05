#include "train/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace tandem {

Lock try_lock(const Descriptor& file) {
  if (!file.is_regular_file()) return Lock::unknown;
  while (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::elsewhere : Lock::unknown;
  }
  return Lock::held;
}

LockedFile open_locked(const std::filesystem::path& path, int flags) {
  constexpr int kMostTries = 100;  // on file systems with unstable inodes is_at_path() stays false
  for (int tries = 1;; ++tries) {
    Descriptor file(path, O_WRONLY | O_CREAT | flags);
    const Lock lock = try_lock(file);
    // The previous holder may have removed the file before it released the lock.
    if (lock != Lock::held || file.is_at_path() || tries == kMostTries)
      return {std::move(file), lock};
  }
}

LockFile::~LockFile() {
  if (locked_.lock != Lock::elsewhere) ::unlink(locked_.file.path().c_str());
}

}  // namespace tandem
