#include "dist/runtime/thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <utility>

namespace tandem {

Thread start_thread(const std::string& name, std::function<void()> body) {
  return Thread([name = name.substr(0, 15), body = std::move(body)] {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // nanoseconds
    body();
  });
}

}  // namespace tandem
