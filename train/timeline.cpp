#include "train/timeline.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "train/reporting.h"

namespace tandem {
namespace {

using SpanList = std::vector<Spans::Span>;

constexpr std::string_view kLetters = "DFBUCSAW";  // by SpanKind
static_assert(kLetters.size() == kSpanNames.size());

struct Extent {
  Clock::time_point begin, end;
};

// When the compute thread was busy with each iteration.
std::map<std::int64_t, Extent> iterations_of(const SpanList& spans) {
  std::map<std::int64_t, Extent> iterations;
  for (const Spans::Span& e : spans) {
    const auto [at, added] = iterations.try_emplace(e.iteration, Extent{e.begin, e.end});
    at->second.begin = std::min(at->second.begin, e.begin);
    at->second.end = std::max(at->second.end, e.end);
  }
  return iterations;
}

// The iterations that are shown.
struct Excerpt {
  std::int64_t first, last;  // iterations
  Extent extent;
};

Excerpt choose(const std::map<std::int64_t, Extent>& iterations, std::int64_t cold,
               double mean_ms) {
  const std::int64_t newest = iterations.rbegin()->first;
  // After a checkpoint, the first iterations are missing. Spans that belong to none have the key 0.
  const auto oldest = newest > 0 ? iterations.upper_bound(0) : iterations.begin();
  const std::int64_t last_choice = std::max(oldest->first, newest - 2);
  const std::int64_t first_choice = std::min(std::max(cold, (cold + newest) / 2) + 1, last_choice);
  Excerpt best{};
  double best_distance = HUGE_VAL;
  for (std::int64_t first = first_choice; first <= last_choice; ++first) {
    const std::int64_t last = std::min(first + 1, newest);
    const Extent extent{iterations.at(first).begin, iterations.at(last).end};
    const double ms = 1e3 * seconds_between(extent.begin, extent.end);
    const double distance = std::abs(ms - mean_ms * static_cast<double>(last - first + 1));
    if (distance < best_distance) best = {first, last, extent};
    best_distance = std::min(distance, best_distance);
  }
  return best;
}

class Drawing {
 public:
  Drawing(const Extent& extent, std::size_t columns)
      : begin_(extent.begin),
        seconds_(seconds_between(extent.begin, extent.end)),
        columns_(columns) {}

  double ms_per_column() const { return 1e3 * seconds_ / static_cast<double>(columns_); }

  // One letter per column: what the thread did for most of that time.
  std::string letters(SpanList spans) const {
    // Spans are nested or disjoint. Inner ones are shorter, so they are painted last, over the
    // outer ones.
    std::ranges::stable_sort(spans, std::greater(),
                             [](const Spans::Span& e) { return e.end - e.begin; });
    std::string fine(columns_ * kFine, ' ');
    for (const Spans::Span& e : spans)
      std::fill(fine.begin() + place(e.begin, fine.size()),
                fine.begin() + place(e.end, fine.size()),
                kLetters[static_cast<std::size_t>(e.kind)]);
    std::string row;
    for (std::size_t column = 0; column < columns_; ++column)
      row += most_frequent(std::string_view(fine).substr(column * kFine, kFine));
    return row;
  }

  // Writes an iteration's number where it begins, unless the previous one is in the way.
  std::string numbers(const std::map<std::int64_t, Extent>& iterations) const {
    std::string row(columns_, ' ');
    std::ptrdiff_t room = 0;
    for (const auto& [iteration, extent] : iterations) {
      if (extent.end <= begin_ || place(extent.begin, columns_) == std::ssize(row)) continue;
      room = write(row, place(extent.begin, columns_), room, fmt::format("|{}", iteration));
    }
    return row;
  }

  // Milliseconds, with ticks at round numbers.
  std::string scale() const {
    const double length = 1e3 * seconds_;
    const double step = tick_step(length, 6);
    std::string row(columns_, ' ');
    std::ptrdiff_t room = 0;
    for (int tick = 0; tick * step < length; ++tick)
      room = write(row, place(begin_ + from_seconds(tick * step / 1e3), columns_), room,
                   fmt::format("|{:g}{}", tick * step, tick == 0 ? " ms" : ""));
    return row;
  }

 private:
  static constexpr std::size_t kFine = 16;  // points in time per letter

  // The place, out of `size`, of a point in time. Times before and after the excerpt are clipped.
  std::ptrdiff_t place(Clock::time_point at, std::size_t size) const {
    const double share = std::clamp(seconds_between(begin_, at) / seconds_, 0., 1.);
    return static_cast<std::ptrdiff_t>(std::lround(share * static_cast<double>(size)));
  }

  static char most_frequent(std::string_view points) {
    char most = ' ';
    std::ptrdiff_t count = std::ranges::count(points, ' ');
    for (const char letter : kLetters)
      if (const auto of_letter = std::ranges::count(points, letter); of_letter > count) {
        most = letter;
        count = of_letter;
      }
    return most;
  }

  // Writes at `at` unless that is before `room`. Returns where the next text may begin.
  static std::ptrdiff_t write(std::string& row, std::ptrdiff_t at, std::ptrdiff_t room,
                              const std::string& text) {
    if (at < room || at + std::ssize(text) > std::ssize(row)) return room;
    std::ranges::copy(text, row.begin() + at);
    return at + std::ssize(text) + 1;
  }

  Clock::time_point begin_;
  double seconds_;
  std::size_t columns_;
};

}  // namespace

std::string timeline_text(const RankReport& worker, std::int64_t cold, double mean_ms,
                          std::size_t width, double ms_per_letter) {
  const auto iterations = iterations_of(worker.compute_spans);
  if (iterations.empty()) return "";
  Excerpt shown = choose(iterations, cold, mean_ms);
  if (shown.extent.end <= shown.extent.begin) return "";

  constexpr std::size_t kNames = 17, kFewest = 20;  // characters
  std::size_t columns = std::max(width, kNames + kFewest) - kNames;
  if (ms_per_letter > 0) {
    const double ms = 1e3 * seconds_between(shown.extent.begin, shown.extent.end);
    columns = static_cast<std::size_t>(
        std::min(std::ceil(ms / ms_per_letter), static_cast<double>(columns)));
    shown.extent.end =
        shown.extent.begin + from_seconds(static_cast<double>(columns) * ms_per_letter / 1e3);
  }
  const Drawing drawing(shown.extent, columns);
  std::string text = fmt::format("\nworker {}, {}, {:.{}g} ms a letter\n", worker.rank,
                                 shown.first == shown.last
                                     ? fmt::format("iteration {}", shown.first)
                                     : fmt::format("iterations {} and {}", shown.first, shown.last),
                                 drawing.ms_per_column(), ms_per_letter > 0 ? 6 : 2);
  const auto add = [&](const char* name, std::string row) {
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("  {:<{}}{}\n", name, row.empty() ? 0 : kNames - 2, row);
  };
  add("iteration", drawing.numbers(iterations));
  add("compute", drawing.letters(worker.compute_spans));
  if (!worker.communication_spans.empty()) {
    add("communicate", drawing.letters(worker.communication_spans));
    add("its iteration", drawing.numbers(iterations_of(worker.communication_spans)));
  }
  add("", drawing.scale());
  text += "  F forward, B backward, U update, D wait for data, W wait for communication\n";
  if (!worker.communication_spans.empty())
    text += "  A send and receive, including the wait for other ranks, C compress, S sum\n";
  return text;
}

std::size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

namespace {

void add_name(std::string& out, const char* what, int rank, int thread, const std::string& name) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
                 "\n",
                 what, rank, thread, name);
}

double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

void add_spans(std::string& out, int rank, int thread, const std::vector<Spans::Span>& spans,
               Clock::time_point zero) {
  for (const Spans::Span& e : spans)
    fmt::format_to(
        std::back_inserter(out),
        R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"iteration":{}}}}},)"
        "\n",
        kSpanNames[static_cast<std::size_t>(e.kind)], rank, thread, microseconds(e.begin - zero),
        microseconds(e.end - e.begin), e.iteration);
}

// When worker 0 begins the first iteration that follows the plan; at its end if there is none.
Clock::time_point begin_of_plan(const Summary& s) {
  auto begin = Clock::time_point::max(), end = Clock::time_point::min();
  for (const Spans::Span& e : s.ranks[0].compute_spans) {
    if (e.iteration >= s.plan.first_iteration) begin = std::min(begin, e.begin);
    end = std::max(end, e.end);
  }
  return std::min(begin, end);
}

void add_plan(std::string& out, int thread, const Summary& s, Clock::time_point zero) {
  if (s.plan.text.empty() || s.ranks.empty() || s.ranks[0].compute_spans.empty()) return;
  const auto name = nlohmann::json("plan: " + s.plan.text)
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"i","name":{},"pid":{},"tid":{},"ts":{:.3f},"s":"t","args":{}}},)"
                 "\n",
                 name, s.ranks[0].rank, thread, microseconds(begin_of_plan(s) - zero),
                 plan_to_json(s));
}

}  // namespace

std::string to_chrome_trace(const Summary& summary) {
  constexpr int kCompute = 0, kCommunication = 1;
  auto zero = Clock::time_point::max();
  for (const RankReport& r : summary.ranks)
    for (const auto* spans : {&r.compute_spans, &r.communication_spans})
      for (const Spans::Span& e : *spans) zero = std::min(zero, e.begin);

  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const RankReport& r : summary.ranks) {
    add_name(out, "process_name", r.rank, kCompute,
             fmt::format("{} {}", r.server ? "server, rank" : "worker", r.rank));
    if (!r.server) add_name(out, "thread_name", r.rank, kCompute, "compute");
    add_name(out, "thread_name", r.rank, kCommunication, "communication");
    add_spans(out, r.rank, kCompute, r.compute_spans, zero);
    add_spans(out, r.rank, kCommunication, r.communication_spans, zero);
  }
  add_plan(out, kCommunication, summary, zero);
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out + "\n]}\n";
}

}  // namespace tandem
