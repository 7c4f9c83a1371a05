#include "train/gathering.h"

#include <cstring>

#include "dist/timing/clock_offset.h"
#include "dist/transport/collectives.h"

namespace tandem {

namespace {

std::int64_t bytes_sent(const Transport& transport) {
  std::int64_t sent = 0;
  for (const Tag tag : {Tag::ring, Tag::push, Tag::pull}) sent += transport.bytes_sent(tag);
  return sent;
}

}  // namespace

std::vector<RankReport> gather_reports(Communication& communication, RankReport own,
                                       const Spans& compute) {
  return communication.call([&] {
    Transport& transport = communication.transport();
    own.rank = transport.rank();
    own.bytes_sent += bytes_sent(transport);
    own.take(compute, communication.spans(), clock_offset(transport));
    std::vector<RankReport> reports;
    for (const Bytes& bytes : gather(transport, transport.size(), to_bytes(own)))
      reports.push_back(rank_report_from(bytes));
    return reports;
  });
}

void visit_measurements(State& state, Communication& communication, std::int64_t& sent_before) {
  communication.call([&] {
    const std::int64_t here = bytes_sent(communication.transport());
    std::int64_t sent = sent_before + here;
    state("bytes sent", sent);
    sent_before = sent - here;
    communication.spans().visit(state, "the communication thread");
  });
}

std::set<std::string> gather_skipped(Communication& communication, int workers,
                                     const DataSplit& data) {
  if (!data.skipped) return {};
  std::set<std::string> all = data.skipped->all();
  Bytes own;
  for (const std::string& what : all) {
    const auto bytes = std::as_bytes(std::span(what.c_str(), what.size() + 1));
    own.insert(own.end(), bytes.begin(), bytes.end());
  }
  communication.call([&] {
    for (const Bytes& bytes : gather(communication.transport(), workers, own))
      for (std::size_t at = 0; at < bytes.size();
           at += std::strlen(reinterpret_cast<const char*>(bytes.data()) + at) + 1)
        all.insert(reinterpret_cast<const char*>(bytes.data()) + at);
  });
  return all;
}

}  // namespace tandem
