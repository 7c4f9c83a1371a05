// Small helpers for reporting.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace tandem {

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
