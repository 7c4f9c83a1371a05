#include "dist/transport/hydra.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "dist/transport/mpi_launch.h"

namespace tandem {
namespace {

// Hydra drops what its ranks have written to stderr and it has not read when a job is aborted. It
// reads all the time; this is long enough.
constexpr int kReadMilliseconds = 200;

int watcher_pipe = -1;  // its other end is the watcher's

// MPI_LOCALNRANKS tells Hydra from others that set PMI_FD and speak another language there.
int socket_to_hydra() {
  const bool hydra = env_number("PMI_RANK") >= 0 && env_number("MPI_LOCALNRANKS") >= 0;
  return hydra ? env_number("PMI_FD") : -1;
}

bool say(int socket, std::string_view line) {
  return ::write(socket, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

void abort_line(int socket, int status) {
  say(socket, "cmd=abort exitcode=" + std::to_string(status) + "\n");
}

// Says a line and waits for the answer that begins as wanted.
bool ask(int socket, std::string_view line, std::string_view wanted,
         const std::function<void()>& progress) {
  constexpr auto kPatience = std::chrono::seconds(10);
  if (!say(socket, line)) return false;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::string answer;
  while (answer.find('\n') == std::string::npos) {
    pollfd one{socket, POLLIN, 0};
    if (::poll(&one, 1, 0) > 0) {
      char text[256];
      const ssize_t bytes = ::read(socket, text, sizeof text);
      if (bytes <= 0) return false;
      answer.append(text, static_cast<std::size_t>(bytes));
    } else if (std::chrono::steady_clock::now() > give_up) {
      return false;
    } else {
      progress();
    }
  }
  return answer.starts_with(wanted);
}

[[noreturn]] void watch(const char* app, int rank, pid_t pid, int pipe, int socket) {
  ::prctl(PR_SET_NAME, "rank-watcher");
  // So that pgrep -f and pkill -f do not take the watcher for the rank.
  std::memset(program_invocation_name, 0, std::strlen(program_invocation_name));
  for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  for (int fd = 0; fd < 256; ++fd)
    if (fd != STDERR_FILENO && fd != socket && fd != pipe) ::close(fd);

  // A byte comes from a rank that ends in order; the end of the pipe alone, from one that has died.
  char byte = 0;
  ssize_t bytes = 0;
  while ((bytes = ::read(pipe, &byte, 1)) < 0) {
  }
  if (bytes == 1) std::_Exit(0);
  char text[256];
  const int length =
      std::snprintf(text, sizeof text, "%s: rank %d (process %d) has died; the job ends\n", app,
                    rank, static_cast<int>(pid));
  say(STDERR_FILENO, {text, static_cast<std::size_t>(length)});
  ::poll(nullptr, 0, kReadMilliseconds);
  abort_line(socket, 1);
  ::poll(nullptr, 0, kReadMilliseconds);
  std::_Exit(1);
}

}  // namespace

void watch_over_this_rank(const char* app) {
  const int socket = socket_to_hydra();
  if (socket < 0) return;
  const pid_t pid = ::getpid();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;  // a rank that dies will not be named
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    watch(app, env_number("PMI_RANK"), pid, ends[0], socket);
  }
  ::close(ends[0]);
  if (child < 0) {
    ::close(ends[1]);
    return;
  }
  watcher_pipe = ends[1];
  // UCX aborts a rank whose peer has died in the middle of a copy. Its watcher must not be the
  // first to speak.
  std::signal(SIGABRT, [](int) {
    ::poll(nullptr, 0, 3000);
    std::_Exit(128 + SIGABRT);
  });
}

void dismiss_watcher() {
  if (watcher_pipe < 0) return;
  say(watcher_pipe, "x");
  ::close(watcher_pipe);
  watcher_pipe = -1;
}

bool leave_hydra(const std::function<void()>& progress) {
  const int socket = socket_to_hydra();
  if (socket < 0) return false;
  return ask(socket, "cmd=barrier_in\n", "cmd=barrier_out", progress) &&
         ask(socket, "cmd=finalize\n", "cmd=finalize_ack", progress);
}

void abort_hydra(int status) {
  const int socket = socket_to_hydra();
  if (socket < 0) return;
  ::poll(nullptr, 0, kReadMilliseconds);
  dismiss_watcher();
  abort_line(socket, status);
  ::poll(nullptr, 0, 5000);  // killed here
  std::_Exit(status);
}

}  // namespace tandem
