#include "speedup/columns.h"

#include <fmt/format.h>

namespace tandem {

std::string ms_text(double ms) { return fmt::format("{:.2f}", ms); }

std::string times_text(const std::optional<double>& speedup) {
  return speedup ? fmt::format("{:.2f}×", *speedup) : kNoValue;
}

std::string percent_text(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string target_text(const Results& r) {
  return r.target_accuracy > 0 ? fmt::format("{:g}%", 100 * r.target_accuracy) : kNoValue;
}

std::string marked_name(const Cell& cell, const char* star) {
  return cell.name + (cell.disturbed().empty() ? "" : star);
}

std::vector<Column> columns_of(const Results& r) {
  const auto part = [](double Breakdown::*ms) {
    return [ms](const Cell& c) { return ms_text(c.breakdown.*ms); };
  };
  const std::string iteration = "iteration, ms", training = "training", fast = "speedup over",
                    spent = "breakdown, ms", wire = "all ranks";
  const std::string seconds = "s to " + target_text(r);
  return {
      {iteration, "mean", "iteration ms", [](const Cell& c) { return ms_text(c.iteration_ms()); }},
      {iteration, "spread", "spread",
       [](const Cell& c) {
         const auto spread = c.spread_ms();
         return spread ? "±" + ms_text(*spread) : kNoValue;
       }},
      {iteration, "median", "median", [](const Cell& c) { return ms_text(c.median_ms); }},
      {training, seconds, seconds,
       [&r](const Cell& c) {
         const auto s = c.seconds_to(r.target_accuracy);
         return s ? fmt::format("{:.1f}", *s) : kNoValue;
       }},
      {training, "accuracy", "accuracy",
       [](const Cell& c) { return percent_text(c.test_accuracy); }},
      {fast, "PS-Sync", "over PS-Sync",
       [&r](const Cell& c) { return times_text(r.speedup(c, "PS-Sync")); }},
      {fast, "D-Sync", "over D-Sync",
       [&r](const Cell& c) { return times_text(r.speedup(c, "D-Sync")); }},
      {fast, "same bits", "over D-Sync, same bits",
       [&r](const Cell& c) { return times_text(r.speedup_at_same_bits(c)); }},
      {spent, "compute", "compute", part(&Breakdown::compute)},
      {spent, "compress", "compress", part(&Breakdown::compress)},
      {spent, "exposed", "exposed", part(&Breakdown::exposed)},
      {spent, "other", "other", part(&Breakdown::other)},
      {"overlapped", "hidden", "hidden", part(&Breakdown::hidden)},
      {"model, ms", "predicted", "predicted",
       [](const Cell& c) { return c.predicted_ms ? ms_text(*c.predicted_ms) : kNoValue; }},
      {wire, "MB sent", "MB sent",
       [](const Cell& c) { return fmt::format("{:.2f}", c.bytes_per_iteration / 1e6); }},
  };
}

}  // namespace tandem
