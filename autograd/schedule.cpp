#include "autograd/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tandem {
namespace {

// Iterations are counted from 0 here.
double rate_without_warmup(const Schedule& s, std::int64_t done) {
  switch (s.kind) {
    case Schedule::Kind::constant:
      return s.base;
    case Schedule::Kind::step:
      return s.base * std::pow(s.step_factor, static_cast<double>(done / s.step_every));
    case Schedule::Kind::cosine: {
      const double share =
          std::min(1.0, static_cast<double>(done) / static_cast<double>(s.iterations));
      return s.base * 0.5 * (1 + std::cos(std::numbers::pi * share));
    }
  }
  return s.base;
}

}  // namespace

double Schedule::rate(std::int64_t iteration) const {
  require(iteration >= 1, "iterations count from 1, not {}", iteration);
  const double rate = rate_without_warmup(*this, iteration - 1);
  if (iteration > warmup) return rate;
  return rate * static_cast<double>(iteration) / static_cast<double>(warmup);
}

}  // namespace tandem
