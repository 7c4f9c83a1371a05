#include "train/speedup/excerpt.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tandem {
namespace {

using Json = nlohmann::json;

// Spans of a kind that begin at the same place become one of their whole length.
std::vector<TimelineSpan> joined(const std::vector<TimelineSpan>& spans, double length) {
  const double place = length / 500;
  std::vector<TimelineSpan> all;
  std::map<std::tuple<int, bool, std::string>, std::size_t> last_of;
  for (const TimelineSpan& span : spans) {
    const auto [last, first] =
        last_of.try_emplace({span.rank, span.communicates, span.what}, all.size());
    if (!first && span.begin - all[last->second].begin < place &&
        span.iteration == all[last->second].iteration) {
      all[last->second].end += span.end - span.begin;
    } else {
      last->second = all.size();
      all.push_back(span);
    }
  }
  return all;
}

}  // namespace

std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers) {
  std::vector<TimelineSpan> spans;
  double first = std::numeric_limits<double>::infinity(), last = 0;
  const Json json = Json::parse(trace);
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts").get<double>() / 1e3;
    const int rank = event.at("pid");
    const TimelineSpan span{.rank = rank,
                            .server = rank >= workers,
                            .communicates = event.at("tid") == 1,
                            .what = event.at("name"),
                            .begin = begin,
                            .end = begin + event.at("dur").get<double>() / 1e3,
                            .iteration = event.at("args").at("iteration")};
    spans.push_back(span);
    if (rank > 0 || span.communicates || span.iteration < iterations - 2 ||
        span.iteration >= iterations)
      continue;
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  std::erase_if(spans, [&](const TimelineSpan& s) { return s.end <= first || s.begin >= last; });
  for (TimelineSpan& span : spans) {
    span.begin = std::max(span.begin, first) - first;
    span.end = std::min(span.end, last) - first;
  }
  return joined(spans, last - first);
}

}  // namespace tandem
