// Writes --metrics: one JSON object per line, for an iteration or a test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/file_lock.h"

namespace tandem {

class Metrics {
 public:
  // Writes nothing if `path` is empty. Throws UserError if the file cannot be opened or if another
  // run is writing to it. The file keeps its contents until begin(). If begin() is never called, a
  // file that did not exist before is removed.
  explicit Metrics(const std::string& path);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void begin();  // throws SystemError
  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  // Also writes all lines so far. Throws SystemError if that fails; complete lines written earlier
  // are kept. Do not use the object after that.
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

 private:
  std::optional<LockedFile> locked_;
  bool made_ = false;         // the file was not there before
  bool shortens_ = false;     // the file can be truncated
  std::string lines_;         // not yet written
  std::int64_t written_ = 0;  // bytes
};

}  // namespace tandem
