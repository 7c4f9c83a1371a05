// Small helpers for reporting.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem {

// The value below which `share` of the values lie (nearest rank); 0 of none.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto index =
      static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

// The most memory that this process has held, in MB (10⁶ bytes).
inline double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace tandem
