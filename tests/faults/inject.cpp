// A library for LD_PRELOAD that makes one system call fail, below everything that writes files.
// scripts/check-faults uses it.
//
// It counts the calls that create, write, sync, rename, close or remove a file in TANDEM_FAULT_IN,
// over all threads. At call number TANDEM_FAULT_AT it does what TANDEM_FAULT says:
//
//   kill    ends the process, as kill -9 would, before the call
//   full    the call fails with "No space left on device"; so do all writes after it
//   broken  the call fails with "Input/output error"
//   short   a write takes only part of its bytes; this is not an error
//   stall   the call takes an hour
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

const std::string& folder() {
  static const std::string kFolder = variable("TANDEM_FAULT_IN");
  return kFolder;
}
const std::string& fault() {
  static const std::string kFault = variable("TANDEM_FAULT");
  return kFault;
}

bool is_watched(std::string_view path) {
  return !folder().empty() && path.find(folder()) != path.npos;
}

bool is_watched(int fd) {
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 && is_watched(std::string_view(target, static_cast<std::size_t>(length)));
}

std::atomic<bool> is_full = false;

enum class Do { call, fail, half };

// What to do with the next call.
Do next_call(bool writes) {
  static const int kAt = std::atoi(variable("TANDEM_FAULT_AT").c_str());
  static std::atomic<int> calls = 0;
  if (++calls != kAt) {
    if (!is_full || !writes) return Do::call;
    errno = ENOSPC;
    return Do::fail;
  }
  if (fault() == "kill") ::kill(::getpid(), SIGKILL);
  if (fault() == "stall") ::sleep(3600);
  if (fault() == "short") return writes ? Do::half : Do::call;
  if (fault() == "full") {
    is_full = true;
    errno = ENOSPC;
    return Do::fail;
  }
  if (fault() == "broken") {
    errno = EIO;
    return Do::fail;
  }
  return Do::call;
}

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  static const auto kReal = real<int (*)(const char*, int, ...)>("open");
  if ((flags & O_CREAT) != 0 && is_watched(path) && next_call(false) == Do::fail) return -1;
  return kReal(path, flags, mode);
}

ssize_t writev(int fd, const iovec* pieces, int count) {
  static const auto kReal = real<ssize_t (*)(int, const iovec*, int)>("writev");
  if (!is_watched(fd)) return kReal(fd, pieces, count);
  switch (next_call(true)) {
    case Do::fail:
      return -1;
    case Do::half: {
      const iovec half = {pieces->iov_base, (pieces->iov_len + 1) / 2};
      return kReal(fd, &half, 1);
    }
    case Do::call:
      break;
  }
  return kReal(fd, pieces, count);
}

int fsync(int fd) {
  static const auto kReal = real<int (*)(int)>("fsync");
  return is_watched(fd) && next_call(false) == Do::fail ? -1 : kReal(fd);
}

int close(int fd) {
  static const auto kReal = real<int (*)(int)>("close");
  if (!is_watched(fd) || next_call(false) != Do::fail) return kReal(fd);
  const int reason = errno;
  kReal(fd);
  errno = reason;
  return -1;
}

int rename(const char* from, const char* to) {
  static const auto kReal = real<int (*)(const char*, const char*)>("rename");
  return is_watched(to) && next_call(false) == Do::fail ? -1 : kReal(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static const auto kReal = real<int (*)(const char*, mode_t)>("mkdir");
  return is_watched(path) && next_call(false) == Do::fail ? -1 : kReal(path, mode);
}

int unlink(const char* path) {
  static const auto kReal = real<int (*)(const char*)>("unlink");
  return is_watched(path) && next_call(false) == Do::fail ? -1 : kReal(path);
}

int remove(const char* path) {
  static const auto kReal = real<int (*)(const char*)>("remove");
  return is_watched(path) && next_call(false) == Do::fail ? -1 : kReal(path);
}

}  // extern "C"
