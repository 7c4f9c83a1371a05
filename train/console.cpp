#include "train/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/error.h"

namespace tandem {

bool WriteFailures::attempt(const std::string& output, const std::function<void()>& write) {
  try {
    write();
    reasons_.erase(output);
    return true;
  } catch (const std::exception& e) {
    reasons_[output] = e.what();
    return false;
  }
}

bool WriteFailures::attempt_meanwhile(const std::string& output,
                                      const std::function<void()>& write) {
  if (attempt(output, write)) return true;
  if (!said_.insert(output).second) return false;
  const char* over_a_bar = ::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";
  std::fputs(fmt::format("{}{}: {}: {}; the run continues without it\n", over_a_bar, app_, output,
                         reasons_[output])
                 .c_str(),
             stderr);
  return false;
}

std::string WriteFailures::message() const {
  std::string all;
  for (const auto& [output, reason] : reasons_)
    all += fmt::format("{}{}: {}", all.empty() ? "not everything could be written: " : "; ", output,
                       reason);
  return all;
}

void WriteFailures::throw_if_any() const {
  if (!reasons_.empty()) throw SystemError("{}", message());
}

void Console::print(const std::string& text) {
  if (!works_) return;
  const char* name = stream_ == stdout ? "standard output" : "standard error";
  works_ = failures_.attempt_meanwhile(name, [&] {
    if (std::fputs(text.c_str(), stream_) < 0 || std::fflush(stream_) != 0)
      throw SystemError("cannot be written: {}", std::strerror(errno));
  });
}

}  // namespace tandem
