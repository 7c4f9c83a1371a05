#include "speedup/excerpt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

using Json = nlohmann::json;

// Cuts waits out of the spans that they are in, such as the wait for a layer during forward.
std::vector<TimelineSpan> interrupted(const std::vector<TimelineSpan>& spans) {
  std::map<std::pair<int, bool>, std::vector<TimelineSpan>> waits;  // by thread, in order
  for (const TimelineSpan& span : spans)
    if (span.what == "wait") waits[{span.rank, span.communicates}].push_back(span);
  std::vector<TimelineSpan> pieces;
  for (const TimelineSpan& span : spans) {
    TimelineSpan piece = span;
    if (span.what != "wait")
      for (const TimelineSpan& wait : waits[{span.rank, span.communicates}]) {
        if (wait.begin < piece.begin || wait.end > span.end) continue;
        piece.end = wait.begin;
        if (piece.end > piece.begin) pieces.push_back(piece);
        piece.begin = wait.end;
        piece.end = span.end;
      }
    if (piece.end > piece.begin) pieces.push_back(piece);
  }
  return pieces;
}

// Merges spans of one kind that begin at almost the same time into one span of their total length.
std::vector<TimelineSpan> joined(std::vector<TimelineSpan> spans, double length) {
  // Outer spans first: they contain the time of inner ones of their kind.
  std::ranges::stable_sort(
      spans, {}, [](const TimelineSpan& span) { return std::pair(span.begin, -span.end); });
  const double place = length / 500;
  std::vector<TimelineSpan> all;
  std::map<std::tuple<int, bool, std::string>, std::size_t> last_of;
  for (const TimelineSpan& span : spans) {
    const auto [last, first] =
        last_of.try_emplace({span.rank, span.communicates, span.what}, all.size());
    if (!first && span.begin - all[last->second].begin < place &&
        span.iteration == all[last->second].iteration) {
      if (span.begin >= all[last->second].end) all[last->second].end += span.end - span.begin;
    } else {
      last->second = all.size();
      all.push_back(span);
    }
  }
  return all;
}

struct Extent {
  double begin = std::numeric_limits<double>::infinity(), end = 0;
};

// When rank 0 computed which iterations.
std::map<std::int64_t, Extent> iterations_of_rank_0(const std::vector<TimelineSpan>& spans) {
  std::map<std::int64_t, Extent> all;
  for (const TimelineSpan& span : spans) {
    if (span.rank > 0 || span.communicates) continue;
    Extent& extent = all[span.iteration];
    extent.begin = std::min(extent.begin, span.begin);
    extent.end = std::max(extent.end, span.end);
  }
  return all;
}

}  // namespace

std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers,
                                  double mean_ms) {
  std::vector<TimelineSpan> spans;
  const Json json = Json::parse(trace);
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts").get<double>() / 1e3;
    const int rank = event.at("pid");
    spans.push_back({.rank = rank,
                     .server = rank >= workers,
                     .communicates = event.at("tid") == 1,
                     .what = event.at("name"),
                     .begin = begin,
                     .end = begin + event.at("dur").get<double>() / 1e3,
                     .iteration = event.at("args").at("iteration")});
  }
  const auto computed = iterations_of_rank_0(spans);
  double first = 0, last = 0, nearest = std::numeric_limits<double>::infinity();
  for (std::int64_t t = iterations / 2 + 1; t + 2 <= iterations; ++t) {
    const double off = std::abs(computed.at(t + 2).begin - computed.at(t).begin - 2 * mean_ms);
    if (off >= nearest) continue;
    nearest = off;
    first = computed.at(t).begin;
    last = computed.at(t + 1).end;
  }
  std::erase_if(spans, [&](const TimelineSpan& s) { return s.end <= first || s.begin >= last; });
  for (TimelineSpan& span : spans) {
    span.begin = std::max(span.begin, first) - first;
    span.end = std::min(span.end, last) - first;
  }
  return joined(interrupted(spans), last - first);
}

}  // namespace tandem
