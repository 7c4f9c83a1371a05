#include "train/gathering.h"

#include <cstring>

#include "dist/timing/clock_offset.h"
#include "dist/transport/collectives.h"

namespace tandem {

std::vector<RankReport> gather_reports(Communication& communication, RankReport own,
                                       const Spans& compute) {
  return communication.call([&] {
    Transport& transport = communication.transport();
    own.rank = transport.rank();
    for (const Tag tag : {Tag::ring, Tag::push, Tag::pull})
      own.bytes_sent += transport.bytes_sent(tag);
    own.take(compute, communication.spans(), clock_offset(transport));
    std::vector<RankReport> reports;
    for (const Bytes& bytes : gather(transport, transport.size(), to_bytes(own)))
      reports.push_back(rank_report_from(bytes));
    return reports;
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
