#include "dist/timing/calibration.h"

#include <algorithm>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/hop.h"
#include "dist/transport/collectives.h"

namespace tandem {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;

// Each rank sends `count` messages to its right neighbour and receives as many. Returns the
// seconds.
double ring_exchange(Transport& t, int ranks, std::size_t count, std::size_t bytes) {
  const int left = (t.rank() + ranks - 1) % ranks, right = (t.rank() + 1) % ranks;
  const std::vector<std::byte> out(bytes);
  Buffers in(count, std::vector<std::byte>(bytes));
  std::vector<Request> requests;
  barrier(t, ranks);
  const auto begin = Clock::now();
  for (auto& buffer : in) requests.push_back(t.receive(left, Tag::calibration, buffer));
  for (std::size_t i = 0; i < count; ++i) requests.push_back(t.send(right, Tag::calibration, out));
  for (Request& request : requests) t.wait(request);
  return seconds_between(begin, Clock::now());
}

// The time of a single short message.
double measure_alpha(Transport& t, int ranks) {
  constexpr int kRounds = 20;
  double seconds = 0;
  for (int round = 0; round < kRounds; ++round) seconds += ring_exchange(t, ranks, 1, 8);
  return seconds / kRounds;
}

double measure_beta(Transport& t, int ranks) {
  constexpr std::size_t kMessage = 64 << 10;
  const double few = ring_exchange(t, ranks, 4, kMessage);
  double fast[] = {few < 50e-3 ? 1.0 : 0.0};
  sum_over_ranks(t, ranks, fast);
  if (fast[0] < ranks) return few / (4 * kMessage);  // on a slow link, this is precise enough
  // The difference between a long and a short stream cancels the fixed cost. The fastest of several
  // rounds is the least disturbed.
  double shorter = few, longer = 1e9;
  for (int round = 0; round < 3; ++round) {
    shorter = std::min(shorter, ring_exchange(t, ranks, 4, kMessage));
    longer = std::min(longer, ring_exchange(t, ranks, 36, kMessage));
  }
  return std::max(0.0, longer - shorter) / (32 * kMessage);
}

// The time of one hop of the ring. If the values are on the host, it includes compressing them
// before the hop and putting the sum in its place afterwards.
double measure_gamma(const Compressor& compressor, bool on_host, ThreadPool* helpers) {
  constexpr std::int64_t kCount = 32 * kBlock;
  constexpr int kRounds = 4;
  const bool packs = on_host && !compressor.lossless();
  std::vector<float> values(kCount, 1.0F);
  std::vector<std::byte> received(compressor.bytes(kCount)), own(received.size());
  compressor.compress(values, received);
  compressor.compress(values, own);
  const auto hop = [&] {
    if (packs) compressor.compress(values, own);
    add_received(compressor, {.count = kCount, .step = kBlock}, received, own, own, helpers);
    if (on_host) compressor.decompress(own, values);
  };
  hop();  // wakes the helper threads
  const auto begin = Clock::now();
  for (int round = 0; round < kRounds; ++round) hop();
  return seconds_between(begin, Clock::now()) / static_cast<double>(kRounds * kCount * 4);
}

double measure_sync(Transport& t, int ranks) {
  constexpr int kRounds = 10;
  const auto begin = Clock::now();
  for (int round = 0; round < kRounds; ++round) barrier(t, ranks);
  return seconds_between(begin, Clock::now()) / kRounds;
}

}  // namespace

NetworkCost calibrate(Transport& transport, int ranks, const Compressor& compressor, bool on_host) {
  const auto gamma = [&] { return measure_gamma(compressor, on_host, transport.helpers()); };
  if (ranks == 1) return {.gamma = gamma()};
  barrier(transport, ranks);  // start together
  double values[] = {measure_alpha(transport, ranks), measure_beta(transport, ranks), gamma(),
                     measure_sync(transport, ranks)};
  sum_over_ranks(transport, ranks, values);
  return {values[0] / ranks, values[1] / ranks, values[2] / ranks, values[3] / ranks};
}

}  // namespace tandem
