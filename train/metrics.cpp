#include "train/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "tensor/error.h"

namespace tandem {

Metrics::Metrics(const std::string& path) : path_(path) {
  if (path_.empty()) return;
  file_.open(path_);
  if (!file_) throw UserError("--metrics: cannot write {}: {}", path_, std::strerror(errno));
}

void Metrics::iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr,
                        double ms) {
  if (path_.empty()) return;
  write(fmt::format(R"({{"iteration":{},"epoch":{},"loss":{},"lr":{},"iteration_ms":{:.4f}}})",
                    iteration, epoch, loss, lr, ms));
}

void Metrics::test(std::int64_t epoch, std::int64_t iteration, double train_loss,
                   double test_accuracy, std::optional<double> objective, double wall_s) {
  if (path_.empty()) return;
  write(fmt::format(
      R"({{"epoch":{},"iteration":{},"train_loss":{},"test_accuracy":{},{}"wall_s":{:.4f}}})",
      epoch, iteration, train_loss, test_accuracy,
      objective ? fmt::format(R"("objective":{},)", *objective) : "", wall_s));
  if (!file_.flush()) throw SystemError("cannot write {}: {}", path_, std::strerror(errno));
}

void Metrics::write(const std::string& line) { file_ << line << '\n'; }

}  // namespace tandem
