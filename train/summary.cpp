#include "train/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/statistics.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Milliseconds per iteration.
double breakdown_ms(const Summary& s, std::size_t kind) {
  if (s.iterations == 0) return 0;
  return 1e3 * s.spans.seconds(static_cast<SpanKind>(kind)) / static_cast<double>(s.iterations);
}

Json options_json(const TrainOptions& o) {
  return {{"algo", o.algo},
          {"workers", o.workers},
          {"threads", o.threads},
          {"device", o.device},
          {"batch", o.batch},
          {"epochs", o.epochs},
          {"iterations", o.iterations > 0 ? Json(o.iterations) : nullptr},
          {"seed", o.seed},
          {"label_smoothing", o.label_smoothing},
          {"lr", o.lr},
          {"momentum", o.momentum},
          {"nesterov", o.nesterov},
          {"weight_decay", o.weight_decay},
          {"lr_schedule", o.lr_schedule},
          {"lr_step_epochs", o.lr_step_epochs},
          {"lr_step_factor", o.lr_step_factor},
          {"lr_warmup_iterations", o.lr_warmup_iterations},
          {"data", o.data},
          {"load", o.load},
          {"save", o.save},
          {"metrics", o.metrics},
          {"summary", o.summary},
          {"quiet", o.quiet}};
}

}  // namespace

double Summary::samples_per_s() const {
  return wall_s > 0 ? static_cast<double>(iterations * options.batch) / wall_s : 0;
}

std::string to_json(const Summary& s) {
  Json breakdown;
  for (std::size_t kind = 0; kind < kSpanNames.size(); ++kind)
    breakdown[kSpanNames[kind]] = breakdown_ms(s, kind);
  const Json json = {
      {"app", s.app},
      {"options", options_json(s.options)},
      {"data", s.data},
      {"parameters", s.parameters},
      {"iterations", s.iterations},
      {"wall_s", s.wall_s},
      {"iteration_ms",
       {{"median", quantile(s.iteration_ms, 0.5)}, {"p95", quantile(s.iteration_ms, 0.95)}}},
      {"breakdown_ms", breakdown},
      {"train_loss", s.train_loss},
      {"test_accuracy", s.test_accuracy},
      {"samples_per_s", s.samples_per_s()},
      {"peak_memory_mb", peak_memory_mb()},
      {"weights_hash", s.weights_hash}};
  // Paths need not be UTF-8, JSON must be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const Summary& s) {
  std::string text;
  if (s.iterations > 0) {
    text += fmt::format("\n{} iterations in {:.1f} s, {:.0f} samples/s, peak memory {:.0f} MB\n",
                        s.iterations, s.wall_s, s.samples_per_s(), peak_memory_mb());
    text += fmt::format("  iteration      {:.2f} ms (median), {:.2f} ms (95%)\n",
                        quantile(s.iteration_ms, 0.5), quantile(s.iteration_ms, 0.95));
    text += "  of which     ";
    for (std::size_t kind = 0; kind < kSpanNames.size(); ++kind)
      text +=
          fmt::format("{} {} {:.2f} ms", kind ? "," : "", kSpanNames[kind], breakdown_ms(s, kind));
    text += fmt::format("\n  train loss     {:.4f}", s.train_loss);
  }
  text += fmt::format("\n  test accuracy  {:.2f}%\n  weights hash   {}\n", 100 * s.test_accuracy,
                      s.weights_hash);
  return text;
}

}  // namespace tandem
