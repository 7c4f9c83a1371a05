// What a person sees while training runs: a bar on a terminal, and a line per test anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace tandem {

class Progress {
 public:
  // `epochs` is 0 where tests do not go by epochs. `say` gets the lines that stay.
  Progress(bool quiet, std::int64_t iterations, std::int64_t epochs,
           std::function<void(const std::string&)> say);
  ~Progress() { clear_bar(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws the bar anew, a few times a second at most.
  void step(std::int64_t iteration, double loss, double samples_per_s);
  // Replaces the bar by a line that stays.
  void test(std::int64_t iteration, std::int64_t epoch, double train_loss, double test_accuracy,
            double samples_per_s);

 private:
  void clear_bar();

  bool quiet_;
  bool bar_;  // stderr is a terminal
  std::int64_t iterations_, epochs_;
  std::function<void(const std::string&)> say_;
  Clock::time_point begin_, drawn_;
  double accuracy_ = -1;  // of the last test, once there is one
};

}  // namespace tandem
