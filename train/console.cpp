#include "train/console.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tandem {

void Console::print(const std::string& text) {
  if (!works_) return;
  const char* name = stream_ == stdout ? "standard output" : "standard error";
  works_ = failures_.attempt_meanwhile(name, [&] {
    if (std::fputs(text.c_str(), stream_) < 0 || std::fflush(stream_) != 0)
      throw SystemError("cannot be written: {}", std::strerror(errno));
  });
}

}  // namespace tandem
