#include "dist/transport/collectives.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace tandem {

namespace {

// Replaces the values by those of all ranks, combined in the order of the ranks.
template <class Combine>
void combine_over_ranks(Transport& transport, int ranks, std::span<double> values,
                        Combine&& combine) {
  const auto bytes = std::as_writable_bytes(values);
  if (transport.rank() != 0) {
    transport.send_and_wait(0, Tag::control, bytes);
    transport.receive_and_wait(0, Tag::control, bytes);
    return;
  }
  std::vector<double> other(values.begin(), values.end());
  for (int rank = 1; rank < ranks; ++rank) {
    if (!transport.stands_for_all())
      transport.receive_and_wait(rank, Tag::control, std::as_writable_bytes(std::span(other)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], other[i]);
  }
  if (transport.stands_for_all()) return;
  for (int rank = 1; rank < ranks; ++rank) transport.send_and_wait(rank, Tag::control, bytes);
}

}  // namespace

void sum_over_ranks(Transport& transport, int ranks, std::span<double> values) {
  combine_over_ranks(transport, ranks, values, [](double a, double b) { return a + b; });
}

void max_over_ranks(Transport& transport, int ranks, std::span<double> values) {
  combine_over_ranks(transport, ranks, values, [](double a, double b) { return std::max(a, b); });
}

void barrier(Transport& transport, int ranks) { sum_over_ranks(transport, ranks, {}); }

namespace {

// Sends a value to all other ranks and returns theirs.
std::vector<double> exchange(Transport& transport, int ranks, double own) {
  const auto bytes_of = [](double& value) { return std::as_writable_bytes(std::span(&value, 1)); };
  std::vector<double> values(static_cast<std::size_t>(ranks), own);
  if (transport.stands_for_all()) return values;
  std::vector<Request> requests;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == transport.rank()) continue;
    requests.push_back(
        transport.receive(rank, Tag::control, bytes_of(values[static_cast<std::size_t>(rank)])));
    requests.push_back(transport.send(rank, Tag::control, bytes_of(own)));
  }
  for (Request& request : requests) transport.wait(request);
  return values;
}

}  // namespace

void start_together(Transport& transport, int ranks) {
  // All ranks learn when the last one came and how long a message took at most, so they agree on a
  // time when all of them are here.
  const auto now = [] { return seconds_of(Clock::now().time_since_epoch()); };
  const double last = std::ranges::max(exchange(transport, ranks, now()));
  const double took = std::ranges::max(exchange(transport, ranks, now() - last));
  for (int rank = 1; rank < ranks; ++rank)
    if (transport.machine(rank) != transport.machine(0)) return;  // they have no common clock
  spin_until(Clock::time_point(from_seconds(last + 3 * took)));
}

void wait_for_all(Transport& transport) {
  if (transport.stands_for_all()) return;
  const auto wait = [&](Request request) { transport.wait(request, Patience::while_others_work); };
  if (transport.rank() != 0) {
    wait(transport.send(0, Tag::control, {}));
    wait(transport.receive(0, Tag::control, {}));
    return;
  }
  for (int rank = 1; rank < transport.size(); ++rank)
    wait(transport.receive(rank, Tag::control, {}));
  for (int rank = 1; rank < transport.size(); ++rank) wait(transport.send(rank, Tag::control, {}));
}

std::vector<Bytes> gather(Transport& transport, int ranks, const Bytes& own) {
  if (transport.stands_for_all()) return std::vector<Bytes>(static_cast<std::size_t>(ranks), own);
  std::uint64_t size = own.size();
  const auto size_bytes = std::as_writable_bytes(std::span(&size, 1));
  if (transport.rank() != 0) {
    transport.send_and_wait(0, Tag::control, size_bytes);
    transport.send_and_wait(0, Tag::control, own);
    return {};
  }
  std::vector<Bytes> all = {own};
  for (int rank = 1; rank < ranks; ++rank) {
    transport.receive_and_wait(rank, Tag::control, size_bytes);
    all.emplace_back(size);
    transport.receive_and_wait(rank, Tag::control, all.back());
  }
  return all;
}

void broadcast(Transport& transport, int ranks, Bytes& bytes) {
  if (transport.stands_for_all()) return;
  std::uint64_t size = bytes.size();
  const auto size_bytes = std::as_writable_bytes(std::span(&size, 1));
  if (transport.rank() != 0) {
    transport.receive_and_wait(0, Tag::control, size_bytes);
    bytes.resize(size);
    transport.receive_and_wait(0, Tag::control, bytes);
    return;
  }
  for (int rank = 1; rank < ranks; ++rank) {
    transport.send_and_wait(rank, Tag::control, size_bytes);
    transport.send_and_wait(rank, Tag::control, bytes);
  }
}

}  // namespace tandem
