// The learning rate as a function of the iteration, counted from 1.
#pragma once

#include <cstdint>

namespace tandem {

struct Schedule {
  enum class Kind { constant, step, cosine };

  Kind kind = Kind::constant;
  double base = 0.1;            // the rate that all kinds start from
  std::int64_t iterations = 1;  // cosine: falls to 0 over this many
  std::int64_t step_every = 1;  // step: multiplied by step_factor after this many
  double step_factor = 0.1;
  std::int64_t warmup = 0;  // first rises linearly to the kind's rate over this many

  double rate(std::int64_t iteration) const;
};

}  // namespace tandem
