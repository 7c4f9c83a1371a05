#include "dist/communication.h"

namespace tandem {

Communication::Communication(const std::function<std::unique_ptr<Transport>()>& open)
    : thread_(start_thread("communication", Work::waits, [this] { work(); })) {
  try {
    call([&] { transport_ = open(); });
  } catch (...) {
    jobs_.close();
    throw;
  }
}

Communication::~Communication() { jobs_.close(); }

void Communication::work() {
  auto next_sign = Clock::now();
  for (;;) {
    const bool ready = !transport_ || jobs_.wait_until(next_sign);
    // Shows the other ranks that this one is alive while it computes.
    if (const auto now = Clock::now(); transport_ && now >= next_sign) {
      transport_->show({Sign::State::busy});
      next_sign = now + transport_->slice();
    }
    if (!ready) continue;
    auto job = jobs_.take_if_open();
    if (!job) return;
    (*job)();
  }
}

}  // namespace tandem
