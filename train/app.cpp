#include "train/app.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "base/error.h"
#include "dist/launch.h"
#include "dist/transport/crash.h"
#include "dist/transport/hydra.h"
#include "dist/transport/mpi_launch.h"
#include "train/interruption.h"

namespace tandem {

namespace {

// A closed pipe or a full disk makes a write fail. It must not kill the program, which may have
// hours of training to save. If a standard stream is closed, /dev/null takes its descriptor, so
// that no file opened later receives the messages. It is opened for reading, so that writes to it
// still fail.
void survive_failing_writes() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

// If stderr is closed or full too, only the exit status tells.
void say(const char* name, const char* kind, const std::exception& e) {
  std::fputs(fmt::format("{}: {}{}\n", name, kind, e.what()).c_str(), stderr);
}

int run(const char* name, const std::function<void()>& body) {
  // When all ranks find the same mistake in the command line, only the first rank reports it.
  const bool speaks = is_first_rank();
  try {
    try {
      body();
      if (std::fflush(stdout) != 0)
        throw SystemError("cannot write to standard output: {}", std::strerror(errno));
    } catch (...) {
      leave_before_ranks(name, std::current_exception());
      throw;
    }
    leave_before_ranks(name, nullptr);
    return 0;
  } catch (const SaidElsewhere&) {
    return 2;
  } catch (const UserError& e) {
    if (speaks) say(name, "", e);
    return 2;
  } catch (const std::logic_error& e) {
    say(name, "internal error: ", e);
    return 1;
  } catch (const Diverged& e) {
    say(name, "", e);
    return 3;
  } catch (const Interrupted& e) {
    if (speaks) say(name, "", e);
    return 128 + e.signal;
  } catch (const std::exception& e) {
    say(name, "", e);
    return 1;
  }
}

}  // namespace

int run_app(const char* name, const std::function<void()>& body) {
  take_signals_from_ucx();
  survive_failing_writes();
  allow_interruptions();
  watch_over_this_rank(name);
  return run(name, body);
}

}  // namespace tandem
