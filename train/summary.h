// What a run came to: shown at the end, and written by --summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/timing/spans.h"
#include "train/options.h"

namespace tandem {

struct Summary {
  std::string app;
  TrainOptions options;
  std::string data;
  std::int64_t parameters = 0;
  std::int64_t iterations = 0;
  double wall_s = 0;                 // training alone; testing is not counted
  std::vector<double> iteration_ms;  // one per iteration
  Spans spans;
  double train_loss = 0;  // mean over the iterations of the last epoch
  double test_accuracy = 0;
  std::string weights_hash;

  double samples_per_s() const;
};

std::string to_json(const Summary& summary);  // one object
std::string to_text(const Summary& summary);  // for a person

}  // namespace tandem
