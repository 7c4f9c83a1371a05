#include "speedup/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "speedup/html.h"
#include "speedup/palette.h"
#include "train/reporting.h"

namespace tandem {
namespace {

constexpr double kWidth = 1000, kGutter = 150, kRight = 12;
constexpr double kHeader = 15, kRow = 17, kGap = 9, kAxis = 36;

// `wait` is nearly transparent.
std::string fill_of(const std::string& what) {
  return what == "wait" ? R"(fill="currentColor" fill-opacity="0.1")"
                        : fmt::format(R"(fill="{}")", activity_colour(what));
}

bool fits(const std::string& text, double width) {
  constexpr double kCharacter = 6.4, kMargin = 4;
  return static_cast<double>(text.size()) * kCharacter + kMargin < width;
}

using Row = std::vector<const TimelineSpan*>;

// Rows below each other, two for each added rank, on one time scale.
class Drawing {
 public:
  Drawing(double from, double to) : from_(from), to_(std::max(to, from + 1e-6)) {}

  // A rank's compute thread above its communication thread.
  void add(const std::string& label, const std::vector<TimelineSpan>& timeline, int rank) {
    const auto compute = spans_of(timeline, rank, false),
               communication = spans_of(timeline, rank, true);
    body_ += fmt::format("<text x=\"0\" y=\"{:.1f}\" font-weight=\"600\">{}</text>\n",
                         y_ + kHeader + 12, escaped(label));
    if (!compute.empty()) draw_iterations(compute);
    y_ += kHeader;
    if (!compute.empty()) draw_row("compute", compute);
    draw_row("communicate", communication);
    y_ += kGap;
  }

  std::string svg(const std::string& title) const {
    return fmt::format(
        "<svg class=\"timeline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
        "font-family=\"inherit\" font-size=\"11\" fill=\"currentColor\">\n{}{}</svg>\n",
        kWidth, y_ + kAxis, escaped(title), draw_axis(), body_);
  }

 private:
  double x(double ms) const {
    return kGutter + (ms - from_) / (to_ - from_) * (kWidth - kGutter - kRight);
  }

  static Row spans_of(const std::vector<TimelineSpan>& timeline, int rank, bool communicates) {
    Row spans;
    for (const TimelineSpan& span : timeline)
      if (span.rank == rank && span.communicates == communicates) spans.push_back(&span);
    // Activities during a wait or a transfer are drawn on top of it.
    std::ranges::stable_sort(spans, std::greater(), [](const TimelineSpan* span) {
      return span->what == "communicate" || span->what == "wait";
    });
    return spans;
  }

  void draw_row(const char* name, const Row& spans) {
    body_ +=
        fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\" opacity=\"0.75\">{}</text>\n",
                    kGutter - 8, y_ + 12, name);
    for (const TimelineSpan* span : spans) draw_span(*span);
    for (const TimelineSpan* span : spans)
      if (span->what == "communicate") write_iteration(*span);
    y_ += kRow;
  }

  void draw_span(const TimelineSpan& span) {
    constexpr double kThinnest = 0.6;  // that is still visible
    const double left = x(span.begin);
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" {}><title>{} of iteration "
        "{}: "
        "{:.2f} ms from {:.2f} ms on</title></rect>\n",
        left, y_, std::max(x(span.end) - left, kThinnest), kRow - 2, fill_of(span.what),
        escaped(span.what), span.iteration, span.end - span.begin, span.begin);
  }

  // Written in the middle of the span, if there is room.
  void write_iteration(const TimelineSpan& span) {
    const double width = x(span.end) - x(span.begin);
    const std::string number = std::to_string(span.iteration), words = "iteration " + number;
    if (!fits(number, width)) return;
    body_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#1b1d22\" "
        "stroke=\"#ee6677\" "
        "stroke-width=\"3\" paint-order=\"stroke\" pointer-events=\"none\">{}</text>\n",
        (x(span.begin) + x(span.end)) / 2, y_ + 11.5, fits(words, width) ? words : number);
  }

  // A bracket with the number above all that the compute thread did for an iteration.
  void draw_iterations(const Row& spans) {
    std::map<std::int64_t, std::pair<double, double>> iterations;
    for (const TimelineSpan* span : spans) {
      const auto [at, added] =
          iterations.emplace(span->iteration, std::pair(span->begin, span->end));
      at->second.first = std::min(at->second.first, span->begin);
      at->second.second = std::max(at->second.second, span->end);
    }
    for (const auto& [iteration, extent] : iterations) {
      const double left = x(extent.first) + 0.5, right = x(extent.second) - 0.5;
      const std::string number = std::to_string(iteration);
      if (!fits(number, right - left)) continue;
      body_ += fmt::format(
          "<path d=\"M{0:.1f},{2:.1f} v-3 H{1:.1f} v3\" fill=\"none\" stroke=\"currentColor\" "
          "stroke-opacity=\"0.5\"/>"
          "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\" font-size=\"10\">{5}</text>\n",
          left, right, y_ + kHeader - 1, (left + right) / 2, y_ + 8, number);
    }
  }

  // Drawn behind the rows.
  std::string draw_axis() const {
    std::string axis;
    constexpr int kMostTicks = 100;
    const double step = tick_step(to_ - from_, 8), first = std::ceil(from_ / step);
    for (int i = 0; i < kMostTicks && (first + i) * step <= to_; ++i) {
      const double ms = (first + i) * step;
      axis += fmt::format(
          "<path d=\"M{0:.1f},0 V{1:.1f}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>"
          "<text x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\">{3:g}</text>\n",
          x(ms), y_, y_ + 14, ms);
    }
    axis += fmt::format(
        "<path d=\"M{0},{2:.1f} H{1}\" stroke=\"currentColor\" stroke-opacity=\"0.5\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"middle\">milliseconds</text>\n",
        kGutter, kWidth - kRight, y_, (kGutter + kWidth - kRight) / 2, y_ + 30);
    return axis;
  }

  double from_, to_;
  double y_ = 0;  // of the next row
  std::string body_;
};

double begin_of(const std::vector<TimelineSpan>& timeline) {
  return std::ranges::min(timeline, {}, &TimelineSpan::begin).begin;
}
double end_of(const std::vector<TimelineSpan>& timeline) {
  return std::ranges::max(timeline, {}, &TimelineSpan::end).end;
}

}  // namespace

std::string timeline_svg(const Cell& cell) {
  if (cell.timeline.empty()) return "";
  Drawing drawing(begin_of(cell.timeline), end_of(cell.timeline));
  std::map<int, bool> ranks;  // with whether it is a server
  for (const TimelineSpan& span : cell.timeline) ranks[span.rank] = span.server;
  for (const auto& [rank, server] : ranks)
    drawing.add(server ? "server" : fmt::format("worker {}", rank), cell.timeline, rank);
  return drawing.svg("Timeline of " + cell.name);
}

std::string timelines_on_one_scale(std::span<const Cell> cells) {
  double longest = 0;
  for (const Cell& cell : cells)
    if (!cell.timeline.empty()) longest = std::max(longest, end_of(cell.timeline));
  if (longest == 0) return "";
  Drawing drawing(0, longest);
  for (const Cell& cell : cells)
    if (!cell.timeline.empty()) drawing.add(cell.name, cell.timeline, 0);
  return drawing.svg("Worker 0 with each algorithm");
}

std::string timeline_legend() {
  std::string legend = "<p class=\"legend\">";
  for (const char* what :
       {"data", "forward", "backward", "update", "wait", "compress", "sum", "communicate"})
    legend += fmt::format(
        "<span><svg viewBox=\"0 0 14 12\" width=\"14\" height=\"12\"><rect width=\"14\" "
        "height=\"12\" "
        "{}/></svg> {}</span> ",
        fill_of(what), what);
  return legend + "</p>\n";
}

}  // namespace tandem
