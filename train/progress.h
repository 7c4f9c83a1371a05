// Progress during training: a bar on a terminal, and one line per test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace tandem {

class Progress {
 public:
  // `done`: iterations before a checkpoint that the run continues from. `epochs` is 0 if tests are
  // not at the ends of epochs. `say` prints the lines per test.
  Progress(bool quiet, std::int64_t done, std::int64_t iterations, std::int64_t epochs,
           std::function<void(const std::string&)> say);
  ~Progress() { clear_bar(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws the bar, at most ten times a second.
  void step(std::int64_t iteration, double loss, double samples_per_s);
  // Replaces the bar with a permanent line.
  void test(std::int64_t iteration, std::int64_t epoch, double train_loss, double test_accuracy,
            double samples_per_s);
  // Prints a line in place of the bar.
  void note(const std::string& line);

 private:
  void clear_bar();

  bool quiet_;
  bool bar_;  // stderr is a terminal
  std::int64_t done_, iterations_, epochs_;
  std::function<void(const std::string&)> say_;
  Clock::time_point begin_, drawn_;
  double accuracy_ = -1;  // of the last test; negative before the first
};

}  // namespace tandem
