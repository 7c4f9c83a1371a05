#include "train/speedup/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

namespace tandem {
namespace {

struct Column {
  std::string title;
  std::function<std::string(const Cell&)> value;
};

std::string optional_value(const std::optional<double>& value, fmt::format_string<double&> format) {
  if (!value) return "-";
  double number = *value;
  return fmt::format(format, number);
}

// Between the fastest and the slowest repeat.
double spread(const Cell& cell) {
  const auto [least, most] = std::ranges::minmax(cell.repeats_ms);
  return most - least;
}

std::vector<Column> outcome(const Results& r) {
  std::vector<Column> columns = {
      {"iteration ms", [](const Cell& c) { return fmt::format("{:.2f}", c.iteration_ms()); }},
      {"spread", [](const Cell& c) { return fmt::format("{:.2f}", spread(c)); }},
      {"predicted", [](const Cell& c) { return optional_value(c.predicted_ms, "{:.2f}"); }},
      {"over PS-Sync",
       [&r](const Cell& c) { return optional_value(r.speedup(c, "PS-Sync"), "{:.2f}x"); }},
      {"over D-Sync",
       [&r](const Cell& c) { return optional_value(r.speedup(c, "D-Sync"), "{:.2f}x"); }},
      {"accuracy", [](const Cell& c) { return fmt::format("{:.2f}%", 100 * c.test_accuracy); }},
  };
  if (r.target_accuracy > 0)
    columns.push_back({fmt::format("s to {:g}%", 100 * r.target_accuracy), [&r](const Cell& c) {
                         return optional_value(c.seconds_to(r.target_accuracy), "{:.1f}");
                       }});
  return columns;
}

std::vector<Column> time_and_bytes() {
  const auto ms = [](double Breakdown::*part) {
    return [part](const Cell& c) { return fmt::format("{:.2f}", c.breakdown.*part); };
  };
  return {
      {"compute", ms(&Breakdown::compute)},
      {"compress", ms(&Breakdown::compress)},
      {"exposed", ms(&Breakdown::exposed)},
      {"wait", ms(&Breakdown::wait)},
      {"hidden", ms(&Breakdown::hidden)},
      {"MB sent", [](const Cell& c) { return fmt::format("{:.2f}", c.bytes_per_iteration / 1e6); }},
  };
}

// Instead of results.
std::string missing(const Cell& cell) {
  return cell.failure.empty() ? "not run yet" : fmt::format("failed: {}", cell.failure);
}

std::string what(const Results& r) {
  return fmt::format(
      "{}{}, batch {}, {} iterations each from seed {}{}, {} repeat{}; {}{}, ranks over {}", r.net,
      r.data.empty() ? "" : " on " + r.data, r.batch, r.iterations, r.seed,
      r.extrapolates() ? fmt::format(", {} of them timed", r.timed) : "", r.repeats,
      r.repeats == 1 ? "" : "s", r.device, r.device == "cuda" ? " " + r.precision : "",
      r.environment.transport);
}

constexpr const char* kLegend =
    "Milliseconds per iteration. compute + compress + exposed + wait make up the mean iteration;\n"
    "hidden is communication behind the computation. predicted: Eq. 2 (D-Sync) and 5 (Pipe-SGD)\n"
    "of the Pipe-SGD paper, and Eq. 2 with a server's card. MB sent: by all ranks together. The\n"
    "paper's ranges for its best setting: 2.0-3.2x over D-Sync, 4.0-5.4x over PS-Sync.\n";

std::string legend(const Results& r) {
  std::string text = kLegend;
  if (r.extrapolates())
    text +=
        "Seconds are iterations times the mean time of an iteration, which is that of D-Sync\n"
        "during a warm-up; the accuracy is that of a whole training without a link.\n";
  return text;
}

}  // namespace

std::string to_text(const Results& r) {
  std::string text = what(r) + "\n";
  // Two tables, because one would be too wide for a terminal.
  const auto add = [&](std::span<const Cell> cells, const std::vector<Column>& columns) {
    const auto width = [](const Column& c) { return std::max<std::size_t>(8, c.title.size()); };
    text += fmt::format("{:<11}", "");
    for (const Column& c : columns) text += fmt::format(" {:>{}}", c.title, width(c));
    for (const Cell& cell : cells) {
      text += fmt::format("\n{:<11}", cell.name);
      if (!cell.done()) {
        text += fmt::format(" {}", missing(cell));
        continue;
      }
      for (const Column& c : columns) text += fmt::format(" {:>{}}", c.value(cell), width(c));
    }
    text += "\n";
  };
  for (const auto cells : r.settings()) {
    text += fmt::format("\n{}\n", cells[0].setting());
    add(cells, outcome(r));
    text += "\n";
    add(cells, time_and_bytes());
  }
  return text + "\n" + legend(r);
}

std::string to_markdown(const Results& r) {
  std::string text = fmt::format("{}. `{}`\n", what(r), r.environment.command);
  std::vector<Column> columns = outcome(r);
  for (const Column& c : time_and_bytes()) columns.push_back(c);
  for (const auto cells : r.settings()) {
    text += fmt::format("\n**{}**\n\n| |", cells[0].setting());
    for (const Column& c : columns) text += fmt::format(" {} |", c.title);
    text += "\n| --- |";
    for (std::size_t i = 0; i < columns.size(); ++i) text += " ---: |";
    for (const Cell& cell : cells) {
      text += fmt::format("\n| {} |", cell.name);
      if (!cell.done())
        text += fmt::format(" {} |", missing(cell));
      else
        for (const Column& c : columns) text += fmt::format(" {} |", c.value(cell));
    }
    text += "\n";
  }
  return text + "\n" + legend(r);
}

std::string to_csv(const Results& r) {
  std::string text =
      "workers,link,algorithm,iteration_ms,least_ms,most_ms,predicted_ms,compute_ms,compress_ms,"
      "exposed_ms,"
      "wait_ms,hidden_ms,bytes_per_iteration,over_ps_sync,over_d_sync,test_accuracy,target_s,"
      "failure\n";
  const auto optional = [](const std::optional<double>& v) {
    return v ? fmt::format("{}", *v) : "";
  };
  for (const Cell& c : r.cells) {
    text += fmt::format("{},{},{},", c.workers, c.link, c.name);
    if (c.done()) {
      const auto [least, most] = std::ranges::minmax(c.repeats_ms);
      const Breakdown& b = c.breakdown;
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},\n", c.iteration_ms(), least,
                          most, optional(c.predicted_ms), b.compute, b.compress, b.exposed, b.wait,
                          b.hidden, c.bytes_per_iteration, optional(r.speedup(c, "PS-Sync")),
                          optional(r.speedup(c, "D-Sync")), c.test_accuracy,
                          optional(c.seconds_to(r.target_accuracy)));
    } else {
      std::string reason = c.failure;
      for (std::size_t at = 0; (at = reason.find('"', at)) != std::string::npos; at += 2)
        reason.insert(at, 1, '"');
      text += fmt::format(",,,,,,,,,,,,,,\"{}\"\n", reason);
    }
  }
  return text;
}

}  // namespace tandem
