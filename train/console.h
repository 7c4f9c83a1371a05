#pragma once

#include <cstdio>
#include <string>

#include "train/write_failures.h"

namespace tandem {

// Text for a person. After a write has failed, it writes nothing more.
class Console {
 public:
  // `stream` is stdout or stderr.
  Console(std::FILE* stream, WriteFailures& failures) : stream_(stream), failures_(failures) {}
  void print(const std::string& text);

 private:
  std::FILE* stream_;
  WriteFailures& failures_;
  bool works_ = true;
};

}  // namespace tandem
