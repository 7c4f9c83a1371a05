// --metrics: one JSON object per line, an iteration or an epoch each.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace tandem {

class Metrics {
 public:
  explicit Metrics(const std::string& path);  // empty: write nothing

  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  void epoch(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
             double wall_s);
  void close();  // throws SystemError if anything could not be written

 private:
  void write(const std::string& line);
  void flush();

  std::string path_;
  std::ofstream file_;
};

}  // namespace tandem
