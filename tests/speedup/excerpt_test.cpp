#include "speedup/excerpt.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

using namespace tandem;

TEST_CASE("speedup: an excerpt of a trace has two iterations near the mean, and no hidden span") {
  std::string events;
  const auto add = [&](const char* what, int rank, int thread, int iteration, double ms,
                       double duration_ms) {
    events += fmt::format(
        R"({}{{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"iteration":{}}}}})",
        events.empty() ? "" : ",", what, rank, thread, 1e3 * ms, 1e3 * duration_ms, iteration);
  };
  // Iterations 5 and 6 take 100 ms each, the others 200.
  const double begins[] = {0, 100, 300, 500, 700, 900, 1000, 1100, 1300};
  for (int t = 1; t <= 8; ++t)
    for (const int rank : {0, 1}) {
      const double begin = begins[t];
      add("forward", rank, 0, t, begin + 10 * rank, 60);
      for (int i = 0; i < 40; ++i) add("compress", rank, 1, t, begin + 60 + 0.1 * i, 0.05);
      add("communicate", rank, 1, t, begin + 60, 40);
    }
  const std::string trace = "{\"traceEvents\":[" + events + "]}";
  const auto spans = excerpt(trace, 8, 1, 110);

  // Rank 0 begins iteration 5 at 900 ms, and ends iteration 6 at 1060 ms; 1/500 of that is 0.32 ms.
  double compressed = 0;
  int compress = 0;
  for (const TimelineSpan& s : spans) {
    CHECK(s.begin >= 0);
    CHECK(s.end <= 160 + 1e-6);
    CHECK(s.server == (s.rank == 1));
    if (s.what != "compress" || s.rank > 0) continue;
    ++compress;
    compressed += s.end - s.begin;
  }
  CHECK(compress == 10);
  CHECK(compressed == doctest::Approx(40 * 0.05));
  const auto forward = std::ranges::find(spans, "forward", &TimelineSpan::what);
  REQUIRE(forward != spans.end());
  CHECK(forward->begin == doctest::Approx(0));
  CHECK(forward->end == doctest::Approx(60));
  CHECK(forward->iteration == 5);
  CHECK(excerpt(trace, 8, 1, 190)[0].iteration == 6);
}

TEST_CASE("speedup: in an excerpt, waits interrupt spans, and nested spans do not add up") {
  std::string events;
  const auto add = [&](const char* what, int thread, int iteration, double ms, double duration_ms) {
    events += fmt::format(
        R"({}{{"ph":"X","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"iteration":{}}}}})",
        events.empty() ? "" : ",", what, thread, 1e3 * ms, 1e3 * duration_ms, iteration);
  };
  for (int t = 1; t <= 8; ++t) {  // as of p3; inner spans are written before outer ones
    add("wait", 0, t, 100 * t + 10, 20);
    add("forward", 0, t, 100 * t, 50);
    add("backward", 0, t, 100 * t + 50, 50);
    add("communicate", 1, t, 100 * t, 30);
    add("wait", 1, t, 100 * t + 80, 15);
    add("communicate", 1, t, 100 * t, 100);
  }
  std::map<std::pair<std::string, bool>, double> ms;
  for (const TimelineSpan& s : excerpt("{\"traceEvents\":[" + events + "]}", 8, 1, 100)) {
    ms[{s.what, s.communicates}] += s.end - s.begin;
    CHECK(s.end <= 200 + 1e-6);
  }
  CHECK(ms[{"forward", false}] == doctest::Approx(2 * 30));
  CHECK(ms[{"wait", false}] == doctest::Approx(2 * 20));
  CHECK(ms[{"backward", false}] == doctest::Approx(2 * 50));
  CHECK(ms[{"communicate", true}] == doctest::Approx(2 * 85));
  CHECK(ms[{"wait", true}] == doctest::Approx(2 * 15));
}
