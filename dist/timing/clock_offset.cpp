// Works like NTP: a rank asks rank 0 for its time and assumes that rank 0 read its clock halfway
// between question and answer. The fastest of several rounds has the smallest error.
#include "dist/timing/clock_offset.h"

#include <span>

namespace tandem {
namespace {

constexpr int kQuestions = 20;

void answer(Transport& transport, int rank) {
  Clock::rep time = 0;
  for (int round = 0; round < kQuestions; ++round) {
    transport.receive_and_wait(rank, Tag::calibration, {});
    time = Clock::now().time_since_epoch().count();
    transport.send_and_wait(rank, Tag::calibration, std::as_bytes(std::span(&time, 1)));
  }
}

Clock::duration ask(Transport& transport) {
  Clock::duration offset{}, fastest = Clock::duration::max();
  for (int round = 0; round < kQuestions; ++round) {
    Clock::rep time = 0;
    const auto begin = Clock::now();
    transport.send_and_wait(0, Tag::calibration, {});
    transport.receive_and_wait(0, Tag::calibration, std::as_writable_bytes(std::span(&time, 1)));
    const auto end = Clock::now();
    if (end - begin >= fastest) continue;
    fastest = end - begin;
    offset = Clock::time_point(Clock::duration(time)) - (begin + (end - begin) / 2);
  }
  return offset;
}

}  // namespace

Clock::duration clock_offset(Transport& transport) {
  if (transport.rank() == 0) {
    for (int rank = 1; rank < transport.size(); ++rank)
      if (transport.machine(rank) != transport.machine(0)) answer(transport, rank);
    return {};
  }
  return transport.machine(transport.rank()) != transport.machine(0) ? ask(transport)
                                                                     : Clock::duration{};
}

}  // namespace tandem
