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

void Communication::wait_a_while(std::span<Request* const> requests, bool gpu_computes) {
  const Clock::duration most = gpu_computes ? std::chrono::microseconds(50) : transport_->slice();
  transport_->wait_any_until(requests, Clock::now() + most);  // failures end it, too
  show_work();
}

void Communication::show_work() {
  const auto now = Clock::now();
  if (now < next_sign_) return;
  transport_->show({Sign::State::busy});
  next_sign_ = now + transport_->slice();
}

void Communication::work() {
  for (;;) {
    const bool ready = !transport_ || jobs_.wait_until(next_sign_);
    if (transport_) show_work();
    if (!ready) continue;
    auto job = jobs_.take_if_open();
    if (!job) return;
    (*job)();
  }
}

}  // namespace tandem
