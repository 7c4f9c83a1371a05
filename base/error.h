// The kinds of errors. They differ in how a program ends (train/app.h):
//   UserError    a usage error (option, file, size): one sentence, exit status 2
//   SystemError  the environment failed (memory, disk, a peer): status 1
//   Diverged     training diverged: a number is no longer finite: status 3
//   Interrupted  a signal has stopped training, and results are saved: status 128 + the signal
//   logic_error  a contract inside Tandem is broken, which is a bug: status 1
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace tandem {

class UserError : public std::runtime_error {
 public:
  template <class... Args>
  explicit UserError(fmt::format_string<Args...> message, Args&&... args)
      : std::runtime_error(fmt::vformat(message, fmt::make_format_args(args...))) {}
};

// A UserError that another rank reports.
class SaidElsewhere : public UserError {
 public:
  SaidElsewhere() : UserError("another rank has reported the error") {}
};

class SystemError : public std::runtime_error {
 public:
  template <class... Args>
  explicit SystemError(fmt::format_string<Args...> message, Args&&... args)
      : std::runtime_error(fmt::vformat(message, fmt::make_format_args(args...))) {}
};

class Diverged : public SystemError {
  using SystemError::SystemError;
};

class Interrupted : public std::runtime_error {
 public:
  Interrupted(int number, const std::string& message)
      : std::runtime_error(message), signal(number) {}
  const int signal;
};

class OutOfMemory : public SystemError {
 public:
  explicit OutOfMemory(std::size_t bytes_wanted)
      : SystemError("out of memory: {} bytes could not be allocated", bytes_wanted),
        bytes(bytes_wanted) {}
  const std::size_t bytes;
};

[[noreturn, gnu::cold]] inline void broken_contract(fmt::string_view message,
                                                    fmt::format_args args) {
  throw std::logic_error(fmt::vformat(message, args));
}

// Checks a contract between parts of Tandem. It is always on, also in release builds.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) [[unlikely]]
    broken_contract(message, fmt::make_format_args(args...));
}

}  // namespace tandem
