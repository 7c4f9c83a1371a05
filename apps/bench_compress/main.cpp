// Speed of the compressors as a share of memcpy's over the same f32 bytes, on one core.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "base/random.h"
#include "base/statistics.h"
#include "dist/compress/compressor.h"
#include "train/app.h"
#include "train/command_line.h"

using namespace tandem;

namespace {

struct Buffers {
  Buffers(const Compressor& c, std::int64_t count)
      : values(static_cast<std::size_t>(count)),
        other(values.size()),
        packed(c.bytes(count)),
        received(packed.size()) {
    Random random(1);
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    c.compress(values, received);
  }
  std::vector<float> values, other;
  std::vector<std::byte> packed, received;
};

// The median time of each function in seconds. They take turns, so that a noisy machine disturbs
// all equally.
std::vector<double> medians(const std::vector<std::function<void()>>& functions) {
  constexpr int kRounds = 41;
  std::vector<std::vector<double>> seconds(functions.size());
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const auto begin = Clock::now();
      functions[i]();
      seconds[i].push_back(seconds_between(begin, Clock::now()));
    }
  std::vector<double> result;
  for (auto& times : seconds) result.push_back(quantile(times, 0.5));
  return result;
}

void report(const Compressor& c, std::int64_t count) {
  Buffers b(c, count);
  const double f32_bytes = static_cast<double>(count) * sizeof(float);
  const auto seconds = medians({
      [&] { std::memcpy(b.other.data(), b.values.data(), b.values.size() * sizeof(float)); },
      [&] { c.compress(b.values, b.packed); },
      [&] { c.decompress(b.received, b.other); },
      [&] { c.add(b.received, b.values, b.packed); },
  });
  fmt::print("{:8} {:6.0f} MB {:12.1f} {:11.2f} {:11.2f} {:9.2f}\n", c.name(), f32_bytes / 1e6,
             f32_bytes / seconds[0] / 1e9, seconds[0] / seconds[1], seconds[0] / seconds[2],
             seconds[0] / seconds[3]);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("bench_compress", [&] {
    CLI::App app("Speed of the compressors relative to memcpy, on one core.");
    if (!parse_command_line(app, argc, argv)) return;
    fmt::print("f32 bytes per second, relative to memcpy\n");
    fmt::print("{:8} {:>9} {:>12} {:>11} {:>11} {:>9}\n", "", "f32", "memcpy GB/s", "compress",
               "decompress", "hop");
    for (const std::string& name : compressor_names())
      for (const std::int64_t count : {262'144, 4'194'304, 16'777'216})
        report(*make_compressor(name), count);
  });
}
