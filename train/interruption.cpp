#include "train/interruption.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace tandem {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<bool> allowed = false;
std::atomic<int> noted = 0;
std::atomic<std::int64_t> noted_at = 0;  // milliseconds
static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may only use such");

std::int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void note(int signal) {
  constexpr std::int64_t kSame = 500;
  std::int64_t first = 0;
  if (noted_at.compare_exchange_strong(first, milliseconds())) {
    noted = signal;
    return;
  }
  if (milliseconds() - first < kSame) return;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void allow_interruptions() { allowed = true; }

Interruptible::Interruptible() {
  noted = 0;
  noted_at = 0;
  if (!allowed) return;
  took_signals_ = true;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  // A shell starts background jobs with SIGINT ignored. That stays.
  for (const int signal : kSignals)
    if (!is_ignored(signal)) ::sigaction(signal, &action, nullptr);
}

Interruptible::~Interruptible() {
  if (!took_signals_) return;
  for (const int signal : kSignals)
    if (!is_ignored(signal)) ::signal(signal, SIG_DFL);
}

int Interruptible::signal() { return noted; }

void Interruptible::interrupt(int signal) { noted = signal; }

}  // namespace tandem
