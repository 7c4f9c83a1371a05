#include "dist/timing/rank_report.h"

#include <cstring>
#include <type_traits>

namespace tandem {
namespace {

// Writer appends values to bytes. Reader takes them from there in the same order.
struct Writer {
  Bytes bytes;
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    for (const T& value : values) (*this)(value);
  }
};

struct Reader {
  const Bytes& bytes;
  std::size_t at = 0;
  template <class T>
  void operator()(T& value) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    std::size_t size = 0;
    (*this)(size);
    values.resize(size);
    for (T& value : values) (*this)(value);
  }
};

template <class Report, class Visit>
void for_each_field(Report& r, Visit&& visit) {
  visit(r.rank);
  visit(r.server);
  visit(r.bytes_sent);
  visit(r.compute_s);
  visit(r.communication_s);
  visit(r.compute_spans);
  visit(r.communication_spans);
  visit(r.computing_by_tensor.tensors);
  visit(r.computing_by_tensor.mean_s);
  visit(r.computing_by_tensor.iterations_s);
  visit(r.host);
}

}  // namespace

double RankReport::computing() const {
  return compute(SpanKind::data) + compute(SpanKind::forward) + compute(SpanKind::backward) +
         compute(SpanKind::update);
}

double RankReport::communicating() const {
  return communication(SpanKind::compress) + communication(SpanKind::sum) +
         communication(SpanKind::communicate);
}

void RankReport::take(const Spans& compute, const Spans& communication, Clock::duration to_rank_0) {
  for (std::size_t kind = 0; kind < kSpanNames.size(); ++kind) {
    compute_s[kind] = compute.seconds(static_cast<SpanKind>(kind));
    communication_s[kind] = communication.seconds(static_cast<SpanKind>(kind));
  }
  compute_spans = compute.all();
  communication_spans = communication.all();
  for (auto* spans : {&compute_spans, &communication_spans})
    for (Spans::Span& span : *spans) {
      span.begin += to_rank_0;
      span.end += to_rank_0;
    }
}

Bytes to_bytes(const RankReport& report) {
  Writer writer;
  for_each_field(report, writer);
  return std::move(writer.bytes);
}

RankReport rank_report_from(const Bytes& bytes) {
  RankReport report;
  for_each_field(report, Reader{bytes});
  return report;
}

}  // namespace tandem
