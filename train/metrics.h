// Writes the course of a run to a file, as text: a line for each iteration and test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.h"
#include "tensor/state.h"
#include "train/file_lock.h"

namespace tandem {

class Metrics {
 public:
  enum class Format {
    json_lines,  // an object per line, for an iteration or a test
    csv,         // a row per iteration; a test fills the last columns of its row
  };

  // `option` is for error messages. Writes nothing if `path` is empty. Throws UserError if the file
  // cannot be opened or if another run is writing to it. The file keeps its contents until begin().
  // If begin() is never called, a file that did not exist before is removed.
  Metrics(std::string option, const std::string& path, Format format);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  const std::string& option() const { return option_; }

  // Saves or loads how far the file was written.
  void visit(State& state);
  // Throws UserError unless the file begins with what was written before the checkpoint, according
  // to what visit() has loaded. An empty file will do, too: it gets what follows.
  void require_continuation();
  // Makes what is written durable. Any thread may call it.
  void sync();
  // Clears the file, or with `continues` what was written after the checkpoint. Throws SystemError.
  void begin(bool continues);
  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  // A test of the weights after this iteration. Also writes all lines so far. Throws SystemError if
  // that fails; complete lines written earlier are kept. Do not use the object after that.
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

 private:
  std::string option_;
  Format format_;
  std::optional<LockedFile> locked_;
  bool made_ = false;                    // the file was not there before
  bool shortens_ = false;                // the file can be truncated
  std::string lines_;                    // not yet written
  std::int64_t written_ = 0;             // bytes
  std::uint64_t hash_ = kHashOfNothing;  // of what is written
};

}  // namespace tandem
