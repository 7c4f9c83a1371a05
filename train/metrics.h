// --metrics: one JSON object per line, an iteration or a test each.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace tandem {

class Metrics {
 public:
  explicit Metrics(const std::string& path);  // empty: write nothing

  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  // Also sees to it that all lines are written; throws SystemError if they could not be.
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

 private:
  void write(const std::string& line);

  std::string path_;
  std::ofstream file_;
};

}  // namespace tandem
