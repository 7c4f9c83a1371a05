#include "train/app.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "dist/transport/crash.h"
#include "dist/transport/hydra.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/error.h"

namespace tandem {

namespace {

int run(const char* name, const std::function<void()>& body) {
  // What all ranks find wrong with their command line is said by the first one.
  const bool speaks = is_first_rank();
  try {
    body();
    if (std::fflush(stdout) != 0) throw SystemError("cannot write to standard output");
    return 0;
  } catch (const SaidElsewhere&) {
    return 2;
  } catch (const UserError& e) {
    if (speaks) fmt::print(stderr, "{}: {}\n", name, e.what());
    return 2;
  } catch (const std::logic_error& e) {
    fmt::print(stderr, "{}: internal error: {}\n", name, e.what());
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

}  // namespace

int run_app(const char* name, const std::function<void()>& body) {
  take_signals_from_ucx();
  watch_over_this_rank(name);
  return run(name, body);
}

}  // namespace tandem
