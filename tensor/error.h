// The three kinds of errors, kept apart because they end differently (train/app.h):
//   UserError    a wrong option, file or size: one sentence, exit status 2
//   SystemError  the environment failed (memory, disk, a peer): one sentence, exit status 1
//   logic_error  a contract inside Tandem was broken: a bug, exit status 1
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace tandem {

class UserError : public std::runtime_error {
 public:
  template <class... Args>
  explicit UserError(fmt::format_string<Args...> message, Args&&... args)
      : std::runtime_error(fmt::format(message, std::forward<Args>(args)...)) {}
};

class SystemError : public std::runtime_error {
 public:
  template <class... Args>
  explicit SystemError(fmt::format_string<Args...> message, Args&&... args)
      : std::runtime_error(fmt::format(message, std::forward<Args>(args)...)) {}
};

// Checks a contract between parts of Tandem. Always on, also in release builds.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) [[unlikely]]
    throw std::logic_error(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace tandem
