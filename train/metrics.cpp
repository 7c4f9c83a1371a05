#include "train/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "train/files.h"

namespace tandem {
namespace {

constexpr const char* kColumns =
    "iteration,epoch,loss,lr,iteration_ms,train_loss,test_accuracy,objective,wall_s\n";
constexpr const char* kNoTest = ",,,,\n";  // the end of a row without a test

}  // namespace

Metrics::Metrics(std::string option, const std::string& path, Format format)
    : option_(std::move(option)), format_(format) {
  if (path.empty()) return;
  if (is_standard_output(path)) {
    locked_.emplace(LockedFile{Descriptor::standard_output(), Lock::unknown});
    return;
  }
  check_permission(option_, path);
  std::error_code error;
  const bool was_there = std::filesystem::exists(path, error);
  try {
    locked_.emplace(open_locked(path));
  } catch (const FileError& e) {
    throw UserError("{}: cannot write {}: {}", option_, path, std::strerror(e.code));
  }
  if (locked_->lock == Lock::elsewhere)
    throw UserError("{}: another run is writing to {}; choose another file", option_, path);
  made_ = !was_there;
  shortens_ = locked_->file.is_regular_file();
}

Metrics::~Metrics() {
  if (made_) ::unlink(locked_->file.path().c_str());
}

void Metrics::require_continuation() {
  if (!shortens_) return;
  const std::string text = read_file(locked_->file.path());
  if (text.empty()) written_ = 0, hash_ = kHashOfNothing;
  const auto before = std::as_bytes(std::span(text))
                          .first(std::min(text.size(), static_cast<std::size_t>(written_)));
  if (std::ssize(before) != written_ || hash_of(before) != hash_)
    throw UserError(
        "{}: {} does not begin with what was written before the checkpoint; choose another file",
        option_, locked_->file.path().string());
}

void Metrics::sync() {
  if (shortens_) locked_->file.sync();
}

void Metrics::begin(bool continues) {
  made_ = false;
  if (!continues) written_ = 0, hash_ = kHashOfNothing;
  if (shortens_) locked_->file.truncate(written_);
  if (written_ == 0 && format_ == Format::csv) lines_ = kColumns;
}

void Metrics::visit(State& state) {
  auto hash = static_cast<std::int64_t>(hash_);
  state("bytes of " + option_, written_);
  state("hash of " + option_, hash);
  hash_ = static_cast<std::uint64_t>(hash);
}

void Metrics::iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr,
                        double ms) {
  if (!locked_) return;
  if (format_ == Format::csv)
    fmt::format_to(std::back_inserter(lines_), "{},{},{},{},{:.4f}{}", iteration, epoch, loss, lr,
                   ms, kNoTest);
  else
    fmt::format_to(std::back_inserter(lines_),
                   R"({{"iteration":{},"epoch":{},"loss":{},"lr":{},"iteration_ms":{:.4f}}})"
                   "\n",
                   iteration, epoch, loss, lr, ms);
}

void Metrics::test(std::int64_t epoch, std::int64_t iteration, double train_loss,
                   double test_accuracy, std::optional<double> objective, double wall_s) {
  if (!locked_) return;
  const std::string value = objective ? fmt::format("{}", *objective) : "";
  if (format_ == Format::csv) {
    require(lines_.ends_with(kNoTest), "iteration {} is tested, but has no row", iteration);
    lines_.resize(lines_.size() - std::strlen(kNoTest));
    fmt::format_to(std::back_inserter(lines_), ",{},{},{},{:.4f}\n", train_loss, test_accuracy,
                   value, wall_s);
  } else {
    fmt::format_to(
        std::back_inserter(lines_),
        R"({{"epoch":{},"iteration":{},"train_loss":{},"test_accuracy":{},{}"wall_s":{:.4f}}})"
        "\n",
        epoch, iteration, train_loss, test_accuracy,
        objective ? fmt::format(R"("objective":{},)", value) : "", wall_s);
  }
  const std::string lines = std::exchange(lines_, {});
  try {
    locked_->file.write(std::as_bytes(std::span(lines)));
    written_ += std::ssize(lines);
    hash_ = hash_of(std::as_bytes(std::span(lines)), hash_);
  } catch (const FileError&) {
    try {
      if (shortens_) locked_->file.truncate(written_);
    } catch (const FileError&) {  // then the file ends with half a line
    }
    throw;
  }
}

}  // namespace tandem
