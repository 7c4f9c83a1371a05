#include "train/app.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tensor/error.h"

namespace tandem {

int run_app(const char* name, const std::function<void()>& body) {
  try {
    body();
    if (std::fflush(stdout) != 0) throw SystemError("cannot write to standard output");
    return 0;
  } catch (const UserError& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 2;
  } catch (const std::logic_error& e) {
    fmt::print(stderr, "{}: internal error: {}\n", name, e.what());
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

}  // namespace tandem
