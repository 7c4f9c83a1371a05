#include "speedup/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "tandem-speedup-";
constexpr const char* kLock = "tandem-speedup.lock";  // marks the folder as ours

bool is_own(const fs::path& path, mode_t type) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == type &&
         status.st_uid == ::geteuid();
}

void remove_leftovers(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const fs::path& folder = entry.path();
    if (!folder.filename().string().starts_with(kFolder) || !is_own(folder, S_IFDIR) ||
        !is_own(folder / kLock, S_IFREG))
      continue;
    try {
      const Descriptor lock(folder / kLock, O_WRONLY | O_NOFOLLOW);
      if (try_lock(lock) == Lock::held) fs::remove_all(folder, error);
    } catch (const FileError&) {  // its process has just removed it
    }
  }
}

}  // namespace

Scratch::Scratch() {
  const fs::path parent = fs::temp_directory_path();
  remove_leftovers(parent);
  do {
    std::string name = parent / (std::string(kFolder) + "XXXXXX");
    if (!::mkdtemp(name.data()))
      throw SystemError("cannot create a folder in {}: {}", parent.string(), std::strerror(errno));
    folder_ = name;
    // Another process may remove it as a leftover before it is locked.
    try {
      lock_.emplace(folder_ / kLock);
    } catch (const FileError& e) {
      if (e.code != ENOENT) throw;
    }
  } while (!lock_ || lock_->is_held_elsewhere());
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace tandem
