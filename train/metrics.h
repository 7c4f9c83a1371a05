// --metrics: one JSON object per line, an iteration or a test each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/file_lock.h"

namespace tandem {

class Metrics {
 public:
  // Empty: write nothing. Throws UserError if the file cannot be opened or if another run writes to
  // it. What it holds stays until begin(), and a file that was not there goes away without that.
  explicit Metrics(const std::string& path);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void begin();  // throws SystemError
  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  // Also sees to it that all lines are written. Throws SystemError if they could not be; those
  // before are kept, whole. There is no going on after that.
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

 private:
  std::optional<LockedFile> locked_;
  bool made_ = false;         // the file was not there before
  bool shortens_ = false;     // what the file holds can be taken away
  std::string lines_;         // not yet written
  std::int64_t written_ = 0;  // bytes
};

}  // namespace tandem
