#include "train/interruption.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <iterator>

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

}  // namespace

void allow_interruptions() { allowed = true; }

struct Interruptible::Actions {
  struct sigaction of[std::size(kSignals)]{};
};

Interruptible::Interruptible() {
  noted = 0;
  noted_at = 0;
  if (!allowed) return;
  before_ = std::make_unique<Actions>();
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_->of[i]);
    // A shell starts background jobs with SIGINT ignored. That stays.
    if (before_->of[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

Interruptible::~Interruptible() {
  if (!before_) return;
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], &before_->of[i], nullptr);
}

int Interruptible::signal() { return noted; }

}  // namespace tandem
