// Small helpers for reporting.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace tandem {

// The value below which `share` of the values lie (nearest rank); 0 if there are none.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto index =
      static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

// The middle value, or the mean of the two in the middle; 0 if there are none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// 0 if there are none.
inline double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

// The distance between an axis's ticks: 1, 2 or 5 times a power of ten, with at most `most` ticks.
inline double tick_step(double length, double most) {
  const double power = std::pow(10, std::floor(std::log10(length / most)));
  for (const double factor : {1., 2., 5.})
    if (factor * power >= length / most) return factor * power;
  return 10 * power;
}

// For people: minutes and seconds, 5:03, or with hours, 1:00:00.
inline std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// The peak memory of this process, in MB (10⁶ bytes).
inline double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace tandem
