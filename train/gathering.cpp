#include "train/gathering.h"

#include <span>

#include "dist/timing/clock_offset.h"
#include "dist/transport/collectives.h"

namespace tandem {

std::vector<RankReport> gather_reports(Communication& communication, RankReport own,
                                       const Spans& compute) {
  return communication.call([&] {
    Transport& transport = communication.transport();
    own.rank = transport.rank();
    own.bytes_sent += transport.bytes_sent();
    own.take(compute, communication.spans(), clock_offset(transport));
    std::vector<RankReport> reports;
    for (const Bytes& bytes : gather(transport, transport.size(), to_bytes(own)))
      reports.push_back(rank_report_from(bytes));
    return reports;
  });
}

void visit_measurements(State& state, Communication& communication, std::int64_t& sent_before) {
  communication.call([&] {
    const std::int64_t here = communication.transport().bytes_sent();
    std::int64_t sent = sent_before + here;
    state("bytes sent", sent);
    sent_before = sent - here;
    communication.spans().visit(state, "the communication thread");
  });
}

std::set<std::string> gather_skipped(Communication& communication, int workers,
                                     const DataSplit& data) {
  if (!data.skipped) return {};
  const std::string text = data.skipped->text();
  const auto own = std::as_bytes(std::span(text));
  communication.call([&] {
    for (const Bytes& bytes :
         gather(communication.transport(), workers, Bytes(own.begin(), own.end())))
      data.skipped->add_all({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  return data.skipped->all();
}

}  // namespace tandem
