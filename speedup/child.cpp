#include "speedup/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/error.h"

namespace tandem {
namespace {

constexpr int kNotStarted = 127;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// An unnamed file that disappears when it is closed.
File temporary_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw SystemError("cannot create a temporary file: {}", std::strerror(errno));
  return file;
}

std::string text_of(std::FILE* file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  return text;
}

// The last line that starts with the name of one of the command's programs, without the name;
// otherwise the last line. (mpiexec prints lines of its own after those of the ranks.)
std::string last_word(const std::string& text, const std::vector<std::string>& command) {
  std::string last, named;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
    for (const std::string& word : command)
      if (const std::string name = std::filesystem::path(word).filename().string() + ": ";
          name.size() > 2 && line.starts_with(name))
        named = line.substr(name.size());
  }
  return named.empty() ? last : named;
}

}  // namespace

std::string run_program(const std::vector<std::string>& command, const std::string& folder) {
  const File out = temporary_file(), err = temporary_file();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw SystemError("cannot start {}: {}", command[0], std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);  // see run_app()
    if (::getppid() != parent || ::chdir(folder.c_str()) != 0) ::_exit(kNotStarted);
    ::dup2(::fileno(out.get()), STDOUT_FILENO);
    ::dup2(::fileno(err.get()), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(kNotStarted);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      throw SystemError("cannot wait for {}: {}", command[0], std::strerror(errno));

  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text_of(out.get());
  std::string said = last_word(text_of(err.get()), command);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted && said.empty())
    throw CannotStart(command[0]);
  if (WIFSIGNALED(status))
    said = fmt::format("{} was killed by signal {}", command[0], WTERMSIG(status));
  else if (said.empty())
    said = fmt::format("{} ended with status {}", command[0], WEXITSTATUS(status));
  throw SystemError("{}", said);
}

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
