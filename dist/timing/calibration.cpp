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

// Seconds for every rank to send `count` messages to its right neighbour and to receive as many.
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

// A message's own cost: what the first one of an exchange takes.
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
  if (fast[0] < ranks) return few / (4 * kMessage);  // a slow link: that was exact enough
  // The difference of two streams is free of what a stream costs once, and of several the shortest
  // are the least disturbed.
  double shorter = few, longer = 1e9;
  for (int round = 0; round < 3; ++round) {
    shorter = std::min(shorter, ring_exchange(t, ranks, 4, kMessage));
    longer = std::min(longer, ring_exchange(t, ranks, 36, kMessage));
  }
  return std::max(0.0, longer - shorter) / (32 * kMessage);
}

// What a hop of the ring does with a block, and the decompression of the sum at the end.
double measure_gamma(const Compressor& compressor) {
  constexpr std::int64_t kBlocks = 128;
  std::vector<float> values(kBlock, 1.0F);
  std::vector<std::byte> received(compressor.bytes(kBlock)), own(received.size());
  compressor.compress(values, received);
  const auto begin = Clock::now();
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    if (!compressor.lossless()) compressor.compress(values, own);
    add_received(compressor, received, kBlock, own);
    if (!compressor.lossless()) compressor.decompress(own, values);
  }
  return seconds_between(begin, Clock::now()) / static_cast<double>(kBlocks * kBlock * 4);
}

double measure_sync(Transport& t, int ranks) {
  constexpr int kRounds = 10;
  const auto begin = Clock::now();
  for (int round = 0; round < kRounds; ++round) barrier(t, ranks);
  return seconds_between(begin, Clock::now()) / kRounds;
}

}  // namespace

NetworkCost calibrate(Transport& transport, int ranks, const Compressor& compressor) {
  if (ranks == 1) return {.gamma = measure_gamma(compressor)};
  barrier(transport, ranks);  // all are here
  double values[] = {measure_alpha(transport, ranks), measure_beta(transport, ranks),
                     measure_gamma(compressor), measure_sync(transport, ranks)};
  sum_over_ranks(transport, ranks, values);
  return {values[0] / ranks, values[1] / ranks, values[2] / ranks, values[3] / ranks};
}

}  // namespace tandem
