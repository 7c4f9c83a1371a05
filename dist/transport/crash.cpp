#include "dist/transport/crash.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>

#include <iterator>
#include <string_view>

#include "dist/transport/hydra.h"

namespace tandem {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP};

// The library whose handler is installed; null if the signal has its default action or is ignored.
const char* handling_library(int signal) {
  struct sigaction action {};
  Dl_info where{};
  if (::sigaction(signal, nullptr, &action) != 0) return nullptr;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return nullptr;
  if (::dladdr(reinterpret_cast<void*>(action.sa_handler), &where) == 0) return nullptr;
  return where.dli_fname;
}

// Called by UCX before it logs a message; UCX's own handler ends the process if it is fatal. The
// parameters after these differ between versions.
int before_ucx_logs(const char*, unsigned, const char*, int level) {
  constexpr int kFatal = 0, kGoOn = 1;
  // Longer than the watcher of the dead rank waits, so that it can end the job before.
  if (level == kFatal) ::poll(nullptr, 0, kFirstSpeaksMilliseconds + 1000);
  return kGoOn;
}

}  // namespace

void delay_fatal_errors_of_ucx() {
  using Push = void (*)(int (*)(const char*, unsigned, const char*, int));
  if (const auto push = reinterpret_cast<Push>(::dlsym(RTLD_DEFAULT, "ucs_log_push_handler")))
    push(before_ucx_logs);
}

void take_signals_from_ucx() {
  for (const int signal : kSignals) {
    const char* const library = handling_library(signal);
    if (!library || std::string_view(library).find("libucs") == std::string_view::npos) continue;
    // UCX remembers the previous handler and restores it.
    using Disable = void (*)(int);
    void* const ucs = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (const auto disable =
            reinterpret_cast<Disable>(ucs ? ::dlsym(ucs, "ucs_debug_disable_signal") : nullptr))
      disable(signal);
    else
      ::signal(signal, SIG_DFL);
    if (ucs) ::dlclose(ucs);  // drops the reference of dlopen(); the library stays loaded
  }
}

struct KeptSignals::Actions {
  struct sigaction of[std::size(kSignals)]{};
};

KeptSignals::KeptSignals() : before_(std::make_unique<Actions>()) {
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], nullptr, &before_->of[i]);
}

KeptSignals::~KeptSignals() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], &before_->of[i], nullptr);
}

}  // namespace tandem
