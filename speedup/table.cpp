#include "speedup/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <span>

#include "dist/strategies.h"

namespace tandem {

std::string batch_text(const Results& r) {
  return r.batch_per_worker > 0 ? fmt::format("{} per worker", r.batch_per_worker)
                                : std::to_string(r.batch);
}

std::string ms_text(double ms) { return fmt::format("{:.2f}", ms); }

std::string times_text(const std::optional<double>& speedup) {
  return speedup ? fmt::format("{:.2f}×", *speedup) : kNoValue;
}

std::string percent_text(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string target_text(const Results& r) {
  return r.target_accuracy > 0 ? fmt::format("{:g}%", 100 * r.target_accuracy) : kNoValue;
}

std::vector<std::string> asynchronous_names(const Results& r) {
  std::vector<std::string> names;
  for (const Cell& cell : r.cells)
    if (const StrategyInfo* algo = find_strategy(cell.algo); algo && algo->asynchronous())
      if (std::ranges::find(names, cell.name) == names.end()) names.push_back(cell.name);
  return names;
}

std::string marked_name(const Cell& cell, const char* star) {
  return cell.name + (cell.disturbed().empty() ? "" : star);
}

namespace {

using Columns = std::vector<Column>;

Column mean_column() {
  return {"iteration, ms", "mean", "iteration ms",
          [](const Cell& c) { return ms_text(c.iteration_ms()); }};
}

Columns speedup_columns(const Results& r) {
  const std::string group = "speedup over";
  const auto over = [&](const std::string& name) -> Column {
    return {group, name, "over " + name,
            [&r, name](const Cell& c) { return times_text(r.speedup(c, name)); }};
  };
  return {over("PS-Sync"),
          over("D-Sync"),
          {group, "same bits", "over D-Sync, same bits",
           [&r](const Cell& c) { return times_text(r.speedup_at_same_bits(c)); }}};
}

Columns breakdown_columns(const Results& r) {
  const auto part = [](const char* group, const char* title, double Breakdown::*ms) -> Column {
    return {group, title, title, [ms](const Cell& c) { return ms_text(c.breakdown.*ms); }};
  };
  const char* spent = "breakdown, ms";
  Columns columns = {part(spent, "compute", &Breakdown::compute),
                     part(spent, "compress", &Breakdown::compress),
                     part(spent, "exposed", &Breakdown::exposed)};
  if (!r.simulated) columns.push_back(part(spent, "other", &Breakdown::other));
  columns.push_back(part("overlapped", "hidden", &Breakdown::hidden));
  return columns;
}

Column sent_column() {
  return {"all ranks", "MB sent", "MB sent",
          [](const Cell& c) { return fmt::format("{:.2f}", c.bytes_per_iteration / 1e6); }};
}

Columns joined(std::initializer_list<Columns> parts) {
  Columns all;
  for (const Columns& columns : parts) all.insert(all.end(), columns.begin(), columns.end());
  return all;
}

// The times of a real run, if there are any.
Columns comparison_columns(const Results& r) {
  if (std::ranges::none_of(r.cells, [](const Cell& c) { return c.measured_ms.has_value(); }))
    return {};
  const auto measured = [](const Cell& c) {
    return c.measured_ms ? ms_text(*c.measured_ms) : kNoValue;
  };
  const auto off = [](const Cell& c) {
    return c.measured_ms ? fmt::format("{:+.1f}%", 100 * (c.iteration_ms() / *c.measured_ms - 1))
                         : kNoValue;
  };
  const std::string group = mean_column().group;
  return {{group, "measured", "measured ms", measured}, {group, "error", "error", off}};
}

// Nothing is trained, so there is no accuracy.
Columns simulated_columns(const Results& r) {
  const Column rate = {"all workers", "samples/s", "samples/s", [&r](const Cell& c) {
                         const double per_s = 1e3 * r.samples(c.workers) / c.iteration_ms();
                         return fmt::format("{:.{}f}", per_s, per_s < 1000 ? 1 : 0);
                       }};
  const Column ranks = {"simulated", "ranks", "simulated ranks", [](const Cell& c) {
                          return c.simulated_ranks.substr(0, c.simulated_ranks.find(':'));
                        }};
  return joined({{mean_column()},
                 comparison_columns(r),
                 {rate},
                 speedup_columns(r),
                 breakdown_columns(r),
                 {sent_column(), ranks}});
}

Columns measured_columns(const Results& r) {
  const Column mean = mean_column();
  const std::string training = "training", seconds = "s to " + target_text(r);
  return joined(
      {{mean,
        {mean.group, "spread", "spread",
         [](const Cell& c) {
           const auto spread = c.spread_ms();
           return spread ? "±" + ms_text(*spread) : kNoValue;
         }},
        {mean.group, "median", "median", [](const Cell& c) { return ms_text(c.median_ms); }},
        {training, seconds, seconds,
         [&r](const Cell& c) {
           const auto s = c.seconds_to(r.target_accuracy);
           return s ? fmt::format("{:.1f}", *s) : kNoValue;
         }},
        {training, "accuracy", "accuracy",
         [](const Cell& c) { return percent_text(c.test_accuracy); }}},
       speedup_columns(r),
       breakdown_columns(r),
       {{"model, ms", "predicted", "predicted",
         [](const Cell& c) { return c.predicted_ms ? ms_text(*c.predicted_ms) : kNoValue; }},
        sent_column()}});
}

}  // namespace

std::vector<Column> columns_of(const Results& r) {
  return r.simulated ? simulated_columns(r) : measured_columns(r);
}

namespace {

// What a row shows instead of results.
std::string missing(const Cell& cell) {
  return cell.failure.empty() ? "not run yet" : fmt::format("failed: {}", cell.failure);
}

std::string what(const Results& r) {
  if (r.simulated)
    return fmt::format("{}, batch {}, simulated: {}", r.net, batch_text(r), r.options);
  return fmt::format(
      "{}{}, batch {}, {} iterations each from seed {}{}, {} repeat{}; {}{}, ranks over {}", r.net,
      r.data.empty() ? "" : " on " + r.data, batch_text(r), r.iterations, r.seed,
      r.extrapolates() ? fmt::format(", {} of them timed", r.timed) : "", r.repeats,
      r.repeats == 1 ? "" : "s", to_string(r.device),
      r.device == DeviceKind::cuda ? fmt::format(" {}", to_string(r.precision)) : "",
      r.environment.transport);
}

constexpr const char* kLegend =
    "Milliseconds per iteration, mean over all repeats; ± is half the range of the repeats.\n"
    "compute + compress + exposed + other = mean. hidden: communication that overlaps compute.\n"
    "same bits: speedup over D-Sync with the same compression. s to: seconds until the first of\n"
    "three tests in a row with that accuracy. predicted: from the measured compute times and\n"
    "the calibrated network. D-Sync: Eq. 2 of the Pipe-SGD paper. Pipe-SGD: Eq. 5. PS-Sync:\n"
    "Eq. 2 with the time that a server's NIC (network card) needs for the data of all workers.\n"
    "Local-SGD: Eq. 2 with the all-reduce's time divided by --period. WFBP, Buckets, MG-WFBP and\n"
    "Merge: Eq. 21 of the MG-WFBP paper, from times that the run measured. P3 and PS-WFBP: the\n"
    "next forward waits layer by layer for slices that travel one by one. The Pipe-SGD paper's\n"
    "speedups with its best setting: 2.0-3.2× over D-Sync, 4.0-5.4× over PS-Sync.\n";

constexpr const char* kSimulatedLegend =
    "Milliseconds per iteration, in virtual time: the mean is that of the first worker, the\n"
    "breakdown that of all. compute + compress + exposed and short gaps = mean. Asynchronous\n"
    "algorithms: the mean is the time in which p workers together make p iterations. hidden:\n"
    "communication that overlaps compute. same bits: speedup over D-Sync with the same\n"
    "compression. ranks: all were simulated, or one that stands for all.\n";

constexpr const char* kAsynchronousLegend =
    "Asynchronous: {}. Workers do not wait for each other.\n"
    "The mean is that of the first worker, and there is no prediction. The weights depend on who "
    "is\n"
    "faster, so accuracy is that of one run over the same link. Seconds are those of timed runs.\n";

std::string legend(const Results& r, const char* star) {
  if (r.simulated) return kSimulatedLegend;
  std::string text = kLegend;
  if (const auto names = asynchronous_names(r); !names.empty())
    text += fmt::format(fmt::runtime(kAsynchronousLegend), fmt::join(names, ", "));
  if (r.extrapolates())
    text +=
        "Seconds are iterations times the mean iteration time; warm-up iterations count with\n"
        "D-Sync's time. The accuracy is that of a complete run, which needs no link unless it is\n"
        "asynchronous.\n";
  for (const Cell& c : r.cells)
    if (const std::string why = c.disturbed(); c.done() && !why.empty())
      text += fmt::format("{} {}, {}, was disturbed: {}.\n", star, c.name, c.setting(), why);
  return text;
}

// A table with the groups' headings above the columns' titles.
std::string text_table(std::span<const Cell> cells, std::span<const Column> columns) {
  const auto width = [&](const Column& c) {
    const auto in_group = std::ranges::count(columns, c.group, &Column::group);
    return std::max<std::size_t>(9,
                                 1 + std::max(c.title.size(), in_group > 1 ? 0 : c.group.size()));
  };
  std::size_t names = 12;
  for (const Cell& cell : cells) names = std::max(names, marked_name(cell).size() + 1);
  std::string groups(names, ' '), titles = groups;
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t all = 0, begin = i;
    for (; i < columns.size() && columns[i].group == columns[begin].group; ++i) {
      titles += fmt::format("{:>{}}", columns[i].title, width(columns[i]));
      all += width(columns[i]);
    }
    groups += fmt::format("{:>{}}", columns[begin].group, all);
  }
  std::string text = groups + "\n" + titles + "\n";
  for (const Cell& cell : cells) {
    text += fmt::format("{:<{}}", marked_name(cell), names);
    if (!cell.done())
      text += fmt::format(" {}", missing(cell));
    else
      for (const Column& c : columns) text += fmt::format("{:>{}}", c.value(cell), width(c));
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Results& r) {
  std::string text = what(r) + "\n";
  const std::vector<Column> columns = columns_of(r);
  // Two tables, because one would be too wide for a terminal.
  const auto second = std::ranges::find(columns, "compute", &Column::title);
  for (const auto cells : r.settings())
    text += fmt::format("\n{}\n{}\n{}", cells[0].setting(),
                        text_table(cells, {columns.begin(), second}),
                        text_table(cells, {second, columns.end()}));
  return text + "\n" + legend(r, "*");
}

std::string to_markdown(const Results& r) {
  const char* star = "\\*";
  std::string text = fmt::format("{}. `{}`\n", what(r), r.environment.command);
  const std::vector<Column> columns = columns_of(r);
  for (const auto cells : r.settings()) {
    text += fmt::format("\n**{}**\n\n| |", cells[0].setting());
    for (const Column& c : columns) text += fmt::format(" {} |", c.alone);
    text += "\n| --- |";
    for (std::size_t i = 0; i < columns.size(); ++i) text += " ---: |";
    for (const Cell& cell : cells) {
      text += fmt::format("\n| {} |", marked_name(cell, star));
      if (!cell.done())
        text += fmt::format(" {} |", missing(cell));
      else
        for (const Column& c : columns) text += fmt::format(" {} |", c.value(cell));
    }
    text += "\n";
  }
  return text + "\n" + legend(r, star);
}

std::string to_csv(const Results& r) {
  std::string text =
      "workers,link,algorithm,mean_ms,spread_ms,median_ms,target_s,test_accuracy,over_ps_sync,"
      "over_d_sync,over_d_sync_same_bits,compute_ms,compress_ms,exposed_ms,other_ms,hidden_ms,"
      "predicted_ms,bytes_per_iteration,disturbed,failure\n";
  const auto optional = [](const std::optional<double>& v) {
    return v ? fmt::format("{}", *v) : "";
  };
  const auto quoted = [](std::string words) {
    if (words.empty()) return words;
    for (std::size_t at = 0; (at = words.find('"', at)) != std::string::npos; at += 2)
      words.insert(at, 1, '"');
    return fmt::format("\"{}\"", words);
  };
  for (const Cell& c : r.cells) {
    text += fmt::format("{},{},{},", c.workers, c.link, c.name);
    const Breakdown& b = c.breakdown;
    if (c.done())
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\n", c.iteration_ms(),
          optional(c.spread_ms()), c.median_ms, optional(c.seconds_to(r.target_accuracy)),
          c.test_accuracy, optional(r.speedup(c, "PS-Sync")), optional(r.speedup(c, "D-Sync")),
          optional(r.speedup_at_same_bits(c)), b.compute, b.compress, b.exposed, b.other, b.hidden,
          optional(c.predicted_ms), c.bytes_per_iteration, quoted(c.disturbed()));
    else
      text += fmt::format(",,,,,,,,,,,,,,,,{}\n", quoted(c.failure));
  }
  return text;
}

}  // namespace tandem
