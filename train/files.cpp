#include "train/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "train/file_lock.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Pipes, devices and paths to open descriptors cannot be replaced by a new file.
bool is_written_directly(const fs::path& path) {
  for (const char* open_files : {"/dev/std", "/dev/fd/", "/proc/"})
    if (path.string().starts_with(open_files)) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// The file that is really written. Links are followed, not replaced, even if the file does not
// exist yet.
fs::path destination(const fs::path& path) {
  constexpr int kMostLinks = 40;  // Linux's limit
  std::error_code error;
  fs::path end = fs::absolute(path, error);
  for (int link = 0; link < kMostLinks && fs::is_symlink(fs::symlink_status(end, error)); ++link)
    end = folder_of(end) / fs::read_symlink(end, error);
  const fs::path real = fs::weakly_canonical(end, error);
  return error ? path : real;
}

// The name of a temporary file is the target's, followed by this and a number.
constexpr const char* kTemporary = ".tandem-tmp-";

bool is_temporary_of(const fs::path& target, const std::string& name) {
  const std::string begin = target.filename().string() + kTemporary;
  return name.starts_with(begin) && name.size() > begin.size() &&
         name.find_first_not_of("0123456789", begin.size()) == std::string::npos;
}

// Removes the temporary files that killed runs have left next to the target. A run that is still
// alive holds a lock on its file, on any machine.
void remove_leftovers(const fs::path& target) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(target), error)) {
    struct stat status {};
    if (!is_temporary_of(target, entry.path().filename().string()) ||
        ::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid())
      continue;
    try {
      const Descriptor file(entry.path(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
      if (try_lock(file) == Lock::held && file.is_at_path()) ::unlink(file.path().c_str());
    } catch (const FileError&) {  // already gone, or no permission
    }
  }
}

// A new, locked file next to the target. Throws SystemError.
Descriptor make_temporary(const fs::path& target) {
  remove_leftovers(target);
  for (auto number = static_cast<std::uint64_t>(::getpid());; ++number) {
    fs::path path = target;
    path += kTemporary + std::to_string(number);
    try {
      LockedFile made = open_locked(path, O_EXCL);
      // Another run may have locked it as a leftover, before this one could.
      if (made.lock != Lock::elsewhere) return std::move(made.file);
    } catch (const FileError& e) {
      if (e.code != EEXIST) throw;
    }
  }
}

// Checks the permission bits, because root may write to any file.
bool is_read_only(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 ||
         ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0;
}

}  // namespace

bool is_standard_output(const fs::path& path) { return path == "-" || path == "/dev/stdout"; }

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (is_standard_output(a) || is_standard_output(b)) return false;
  const fs::path x = destination(a), y = destination(b);
  const fs::file_status at_x = fs::status(x, error), at_y = fs::status(y, error);
  if (fs::exists(at_x) != fs::exists(at_y)) return false;
  if (fs::exists(at_x)) return fs::is_regular_file(at_x) && fs::equivalent(x, y, error);
  return x.filename() == y.filename() && fs::equivalent(folder_of(x), folder_of(y), error);
}

void check_permission(const std::string& option, const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw UserError("{}: {} is a folder", option, path.string());
  if (is_read_only(path))
    throw UserError("{}: {} is read-only; choose another file, or make it writable", option,
                    path.string());
}

void check_writable(const std::string& option, const fs::path& path) {
  std::error_code error;
  // Opening and closing a pipe would end the stream for its reader.
  if (is_standard_output(path) || fs::is_fifo(path, error)) return;
  check_permission(option, path);
  try {
    if (is_written_directly(path)) {
      Descriptor(path, O_WRONLY | O_APPEND);
    } else {
      const Descriptor tried = make_temporary(destination(path));
      ::unlink(tried.path().c_str());
    }
  } catch (const FileError& e) {
    throw UserError("{}: cannot write {}: {}", option, path.string(), std::strerror(e.code));
  }
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  if (is_standard_output(path) || is_written_directly(path)) {
    Descriptor file = is_standard_output(path) ? Descriptor::standard_output()
                                               : Descriptor(path, O_WRONLY | O_APPEND);
    file.write(pieces);
    file.close();
    return;
  }
  const fs::path target = destination(path);
  Descriptor file = make_temporary(target);
  try {
    file.write(pieces);
    file.sync();
    // Renames before closing, because closing releases the lock.
    if (::rename(file.path().c_str(), target.c_str()) != 0)
      throw SystemError("cannot rename {} to {}: {}", file.path().string(), target.string(),
                        std::strerror(errno));
  } catch (...) {
    ::unlink(file.path().c_str());
    throw;
  }
  file.close();
  sync_folder(folder_of(target));
}

void sync_folder(const fs::path& folder) {
  Descriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).sync();
}

void write_file(const fs::path& path, const std::string& text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw SystemError("cannot read {}: {}", path.string(), std::strerror(errno));
  return text;
}

}  // namespace tandem
