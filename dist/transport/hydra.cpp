#include "dist/transport/hydra.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "dist/transport/mpi_launch.h"

namespace tandem {
namespace {

// When a job is aborted, Hydra drops stderr output that it has not read yet. It reads continuously,
// so this pause is long enough.
constexpr int kReadMilliseconds = 200;

// Lines that end a job with a status. MPI sends kAbort to Hydra. abort_hydra() sends kEndOfJob, so
// that the watcher can tell the two apart; it passes kAbort on.
constexpr std::string_view kAbort = "cmd=abort exitcode=", kEndOfJob = "cmd=end_of_job exitcode=";

// MPI_LOCALNRANKS distinguishes Hydra from launchers that set PMI_FD but use another protocol.
int socket_to_hydra() {
  const bool hydra = env_number("PMI_RANK") >= 0 && env_number("MPI_LOCALNRANKS") >= 0;
  return hydra ? env_number("PMI_FD") : -1;
}

bool say(int socket, std::string_view line) {
  return ::write(socket, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

// Sends a line, waits for the answer and returns whether it begins with `wanted`.
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

struct Rank {
  const char* app;
  int number;
  pid_t pid;
};

// Hydra sends these to the process that it has started, which is the watcher.
constexpr int kPassedOn[] = {SIGINT, SIGTERM};
bool is_passed_on(int signal) {
  return std::ranges::find(kPassedOn, signal) != std::end(kPassedOn);
}

// Sits between a rank and Hydra: it forwards their messages and sees how the rank ends.
class Watcher {
 public:
  Watcher(const Rank& rank, int socket, int hydra) : rank_(rank), socket_(socket), hydra_(hydra) {}

  [[noreturn]] void watch() {
    while (socket_ >= 0) {
      pollfd fds[] = {{hydra_, POLLIN, 0}, {socket_, POLLIN, 0}};
      if (::poll(fds, 2, -1) <= 0) continue;
      if (fds[0].revents != 0) pass_to_rank();
      if (fds[1].revents != 0) pass_to_hydra();
    }
    int status = 0;
    while (::waitpid(rank_.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      if (is_passed_on(signal)) {  // a user's signal; Hydra reports it
        ::signal(signal, SIG_DFL);
        ::raise(signal);
      }
      end_job_of_dead_rank(signal);
    }
    std::_Exit(WEXITSTATUS(status));
  }

 private:
  using Text = char[4096];

  void pass_to_rank() {
    Text text;
    const ssize_t bytes = ::read(hydra_, text, sizeof text);
    if (bytes > 0)
      say(socket_, {text, static_cast<std::size_t>(bytes)});
    else
      ::close(std::exchange(hydra_, -1));
  }

  void pass_to_hydra() {
    Text text;
    const ssize_t bytes = ::read(socket_, text, sizeof text);
    if (bytes <= 0) {  // the rank has ended or closed its socket
      ::close(std::exchange(socket_, -1));
      return;
    }
    std::string lines(text, static_cast<std::size_t>(bytes));
    if (lines.starts_with(kEndOfJob))
      lines.replace(0, kEndOfJob.size(), kAbort);
    else if (lines.find(kAbort) != lines.npos)  // MPI aborts and has printed why
      ::poll(nullptr, 0, kFirstSpeaksMilliseconds);
    say(hydra_, lines);
  }

  [[noreturn]] void end_job_of_dead_rank(int signal) {
    if (signal == SIGABRT) ::poll(nullptr, 0, kFirstSpeaksMilliseconds);
    char text[256];
    const int length =
        std::snprintf(text, sizeof text, "%s: rank %d (process %d) has died (%s); the job ends\n",
                      rank_.app, rank_.number, static_cast<int>(rank_.pid), ::strsignal(signal));
    say(STDERR_FILENO, {text, static_cast<std::size_t>(length)});
    ::poll(nullptr, 0, kReadMilliseconds);
    say(hydra_, std::string(kAbort) + "1\n");
    ::poll(nullptr, 0, kReadMilliseconds);  // Hydra kills this process here
    std::_Exit(1);
  }

  Rank rank_;
  int socket_, hydra_;  // -1 once the other end has closed it
};

[[noreturn]] void become_watcher(const Rank& rank, int socket, int hydra) {
  ::prctl(PR_SET_NAME, "rank-watcher");
  // So that pgrep -f and pkill -f do not match the watcher.
  std::memset(program_invocation_name, 0, std::strlen(program_invocation_name));
  for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  static pid_t watched;
  watched = rank.pid;
  for (const int signal : kPassedOn)
    ::signal(signal, [](int received) { ::kill(watched, received); });
  Watcher(rank, socket, hydra).watch();
}

}  // namespace

void watch_over_this_rank(const char* app) {
  const int hydra = socket_to_hydra();
  if (hydra < 0) return;
  int ends[2];  // the watcher's, the rank's
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;  // no watcher
  std::fflush(nullptr);
  const pid_t rank = ::fork();
  if (rank > 0) {
    ::close(ends[1]);
    become_watcher({app, env_number("PMI_RANK"), rank}, ends[0], hydra);
  }
  if (rank == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup3(ends[1], hydra, O_CLOEXEC);  // MPI now talks to the watcher instead of Hydra
  }
  ::close(ends[0]);
  ::close(ends[1]);
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
  say(socket, std::string(kEndOfJob) + std::to_string(status) + "\n");
  ::poll(nullptr, 0, 5000);  // Hydra kills this process here
  std::_Exit(status);
}

}  // namespace tandem
