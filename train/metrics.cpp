#include "train/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "train/files.h"

namespace tandem {

Metrics::Metrics(const std::string& path) {
  if (path.empty()) return;
  if (is_standard_output(path)) {
    locked_.emplace(LockedFile{Descriptor::standard_output(), Lock::unknown});
    return;
  }
  check_permission("--metrics", path);
  std::error_code error;
  const bool was_there = std::filesystem::exists(path, error);
  try {
    locked_.emplace(open_locked(path));
  } catch (const FileError& e) {
    throw UserError("--metrics: cannot write {}: {}", path, std::strerror(e.code));
  }
  if (locked_->lock == Lock::elsewhere)
    throw UserError("--metrics: another run is writing to {}; choose another file", path);
  made_ = !was_there;
  shortens_ = locked_->file.is_regular_file();
}

Metrics::~Metrics() {
  if (made_) ::unlink(locked_->file.path().c_str());
}

void Metrics::begin() {
  made_ = false;
  if (shortens_) locked_->file.truncate(0);
}

void Metrics::iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr,
                        double ms) {
  if (!locked_) return;
  fmt::format_to(std::back_inserter(lines_),
                 R"({{"iteration":{},"epoch":{},"loss":{},"lr":{},"iteration_ms":{:.4f}}})"
                 "\n",
                 iteration, epoch, loss, lr, ms);
}

void Metrics::test(std::int64_t epoch, std::int64_t iteration, double train_loss,
                   double test_accuracy, std::optional<double> objective, double wall_s) {
  if (!locked_) return;
  fmt::format_to(
      std::back_inserter(lines_),
      R"({{"epoch":{},"iteration":{},"train_loss":{},"test_accuracy":{},{}"wall_s":{:.4f}}})"
      "\n",
      epoch, iteration, train_loss, test_accuracy,
      objective ? fmt::format(R"("objective":{},)", *objective) : "", wall_s);
  const std::string lines = std::exchange(lines_, {});
  try {
    locked_->file.write(std::as_bytes(std::span(lines)));
    written_ += std::ssize(lines);
  } catch (const FileError&) {
    try {
      if (shortens_) locked_->file.truncate(written_);
    } catch (const FileError&) {  // then the file ends with half a line
    }
    throw;
  }
}

}  // namespace tandem
