#include "base/thread.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace tandem {
namespace {

// The scheduler runs threads with short time slices early (EEVDF, since Linux 6.12; older kernels
// ignore the request). glibc has neither sched_setattr(2) nor its struct.
void ask_for_short_slices() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;  // nanoseconds
  } attributes{};
  attributes.size = sizeof attributes;
  attributes.flags = 0x08;                           // SCHED_FLAG_KEEP_POLICY
  attributes.nice = ::getpriority(PRIO_PROCESS, 0);  // as it is
  attributes.runtime = 100'000;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace

Thread start_thread(const std::string& name, Work work, std::function<void()> body) {
  if (VirtualTime* time = VirtualTime::here()) return Thread(time->start(std::move(body)));
  return Thread(std::jthread(
      [name = name.substr(0, 15), work, spins = SpinWhileWaiting::here(), body = std::move(body)] {
        const SpinWhileWaiting like_the_starter(spins);
        ::pthread_setname_np(::pthread_self(), name.c_str());
        ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // nanoseconds
        if (work == Work::waits) ask_for_short_slices();
        body();
      }));
}

}  // namespace tandem
