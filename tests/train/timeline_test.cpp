// The timeline that --timeline prints, for spans with known times.
#include "train/timeline.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace tandem;

namespace {

class Worker {
 public:
  Worker& computes(SpanKind kind, std::int64_t iteration, double from_ms, double to_ms) {
    report_.compute_spans.push_back(span(kind, iteration, from_ms, to_ms));
    return *this;
  }
  Worker& communicates(SpanKind kind, std::int64_t iteration, double from_ms, double to_ms) {
    report_.communication_spans.push_back(span(kind, iteration, from_ms, to_ms));
    return *this;
  }
  // One of d-sync that begins at `at` and takes as long as `wait` says, and 10 ms.
  Worker& iteration(std::int64_t t, double at, double wait = 10) {
    computes(SpanKind::forward, t, at, at + 3).computes(SpanKind::backward, t, at + 3, at + 8);
    computes(SpanKind::wait, t, at + 8, at + 8 + wait);
    communicates(SpanKind::compress, t, at + 10, at + 12);  // ends before what it lies in
    communicates(SpanKind::communicate, t, at + 8, at + 8 + wait);
    return computes(SpanKind::update, t, at + 8 + wait, at + 10 + wait);
  }
  const RankReport& report() const { return report_; }

 private:
  Spans::Span span(SpanKind kind, std::int64_t iteration, double from_ms, double to_ms) const {
    return {kind, iteration, zero_ + from_seconds(from_ms / 1e3),
            zero_ + from_seconds(to_ms / 1e3)};
  }
  Clock::time_point zero_ = Clock::now();
  RankReport report_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("timeline: two iterations, a letter for the longest activity, and a scale") {
  Worker w;
  for (int t = 1; t <= 4; ++t) w.iteration(t, 20 * t);
  // 17 characters for the names, one for each of 40 ms.
  const auto lines = lines_of(timeline_text(w.report(), 1, 20, 57));
  REQUIRE(lines.size() == 9);
  CHECK(lines[1] == "worker 0, iterations 2 and 3, 1 ms a letter");
  CHECK(lines[2] == "  iteration      |2                  |3");
  CHECK(lines[3] == "  compute        FFFBBBBBWWWWWWWWWWUUFFFBBBBBWWWWWWWWWWUU");
  CHECK(lines[4] == "  communicate            AACCAAAAAA          AACCAAAAAA");
  CHECK(lines[5] == "  its iteration          |2                  |3");
  CHECK(lines[6] == "                 |0 ms     |10       |20       |30");
}

TEST_CASE("timeline: on a given scale, lines end where the iterations or the lines do") {
  Worker w;
  for (int t = 1; t <= 4; ++t) w.iteration(t, 20 * t);
  auto lines = lines_of(timeline_text(w.report(), 1, 20, 80, 2));
  CHECK(lines[1] == "worker 0, iterations 2 and 3, 2 ms a letter");
  CHECK(lines[3].size() == 17 + 20);
  CHECK(lines[6] == "                 |0 ms     |20  |30");
  lines = lines_of(timeline_text(w.report(), 1, 20, 57, 0.5));  // 40 letters of 80
  CHECK(lines[1] == "worker 0, iterations 2 and 3, 0.5 ms a letter");
  CHECK(lines[3] == "  compute        FFFFFFBBBBBBBBBBWWWWWWWWWWWWWWWWWWWWUUUU");
  CHECK(timeline_text(w.report(), 1, 20, 57, 12.5).find(" 12.5 ms a letter") != std::string::npos);
}

TEST_CASE("timeline: it shows iterations whose time is close to the mean") {
  Worker w;
  double at = 0;
  for (int t = 1; t <= 20; ++t) {
    const double wait = t == 15 || t == 16 ? 10 : t % 2 ? 2 : 40;
    w.iteration(t, at, wait);
    at += 10 + wait;
  }
  CHECK(lines_of(timeline_text(w.report(), 8, 20, 80))[1].starts_with(
      "worker 0, iterations 15 and 16"));
}

TEST_CASE("timeline: a single worker, a short run, and an empty one") {
  Worker w;
  w.computes(SpanKind::forward, 1, 0, 5).computes(SpanKind::backward, 1, 5, 10);
  const auto lines = lines_of(timeline_text(w.report(), 0, 10, 37));
  REQUIRE(lines.size() == 6);
  CHECK(lines[1] == "worker 0, iteration 1, 0.5 ms a letter");
  CHECK(lines[3] == "  compute        FFFFFFFFFFBBBBBBBBBB");
  CHECK(timeline_text(RankReport(), 0, 0, 80).empty());
}
