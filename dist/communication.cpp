#include "dist/communication.h"

namespace tandem {

Communication::Communication(const std::function<std::unique_ptr<Transport>()>& open)
    : thread_(start_thread("communication", Work::waits, [this] {
        while (auto job = jobs_.take_if_open()) (*job)();
      })) {
  try {
    call([&] { transport_ = open(); });
  } catch (...) {
    jobs_.close();
    throw;
  }
}

Communication::~Communication() { jobs_.close(); }

}  // namespace tandem
