#include "train/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tandem {
namespace {

void add_name(std::string& out, const char* what, int rank, int thread, const std::string& name) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
                 "\n",
                 what, rank, thread, name);
}

void add_events(std::string& out, int rank, int thread, const std::vector<Spans::Event>& events,
                Clock::time_point zero) {
  const auto microseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  for (const Spans::Event& e : events)
    fmt::format_to(
        std::back_inserter(out),
        R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"iteration":{}}}}},)"
        "\n",
        kSpanNames[static_cast<std::size_t>(e.kind)], rank, thread, microseconds(e.begin - zero),
        microseconds(e.end - e.begin), e.iteration);
}

}  // namespace

std::string to_chrome_trace(const std::vector<RankReport>& reports) {
  constexpr int kCompute = 0, kCommunication = 1;
  auto zero = Clock::time_point::max();
  for (const RankReport& r : reports)
    for (const auto* events : {&r.compute_events, &r.communication_events})
      for (const Spans::Event& e : *events) zero = std::min(zero, e.begin);

  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const RankReport& r : reports) {
    add_name(out, "process_name", r.rank, kCompute,
             fmt::format("{} {}", r.server ? "server, rank" : "worker", r.rank));
    if (!r.server) add_name(out, "thread_name", r.rank, kCompute, "compute");
    add_name(out, "thread_name", r.rank, kCommunication, "communication");
    add_events(out, r.rank, kCompute, r.compute_events, zero);
    add_events(out, r.rank, kCommunication, r.communication_events, zero);
  }
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out + "\n]}\n";
}

}  // namespace tandem
