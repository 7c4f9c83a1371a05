#include "dist/compress/measured.h"

#include <algorithm>

#include "dist/block.h"

namespace tandem {
namespace {

// The fastest of several rounds is not disturbed.
Clock::duration time_to_read_the_clock() {
  constexpr int kRounds = 10, kReadings = 100;
  auto fastest = Clock::duration::max();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int i = 1; i < kReadings; ++i) (void)Clock::now();
    fastest = std::min(fastest, (Clock::now() - begin) / kReadings);
  }
  return fastest;
}

}  // namespace

MeasuredCompressor::MeasuredCompressor(const Compressor& measured)
    : measured_(measured), reading_(time_to_read_the_clock()) {}

HostWork MeasuredCompressor::work() const {
  const auto total = [](const Counter& counter) {
    return HostWork::Total{static_cast<double>(counter.count),
                           seconds_of(Clock::duration(counter.time))};
  };
  HostWork work{total(check_), total(compress_), total(decompress_), total(add_), total(copy_)};
  work.copy.elements *= static_cast<double>(kBlock) / static_cast<double>(bytes(kBlock));
  return work;
}

void MeasuredCompressor::restart() {
  for (Counter* counter : {&check_, &compress_, &decompress_, &add_, &copy_})
    counter->count = 0, counter->time = 0;
}

template <class F>
void MeasuredCompressor::measure(Counter& counter, std::int64_t count, F&& call) const {
  const auto begin = Clock::now();
  call();
  const auto time = std::max(Clock::duration::zero(), Clock::now() - begin - reading_);
  counter.count.fetch_add(count, std::memory_order_relaxed);
  counter.time.fetch_add(time.count(), std::memory_order_relaxed);
}

void MeasuredCompressor::compress(std::span<const float> values,
                                  std::span<std::byte> packed) const {
  measure(compress_, std::ssize(values), [&] { measured_.compress(values, packed); });
}

void MeasuredCompressor::decompress(std::span<const std::byte> packed,
                                    std::span<float> values) const {
  measure(decompress_, std::ssize(values), [&] { measured_.decompress(packed, values); });
}

void MeasuredCompressor::add(std::span<const std::byte> received, std::span<const float> values,
                             std::span<std::byte> packed) const {
  measure(add_, std::ssize(values), [&] { measured_.add(received, values, packed); });
}

void MeasuredCompressor::add_packed(std::span<const std::byte> received,
                                    std::span<const std::byte> own, std::int64_t count,
                                    std::span<std::byte> sum) const {
  measure(add_, count, [&] { measured_.add_packed(received, own, count, sum); });
}

void MeasuredCompressor::copy(std::span<const std::byte> from, std::span<std::byte> to) const {
  measure(copy_, std::ssize(from), [&] { measured_.copy(from, to); });
}

bool MeasuredCompressor::finite(std::span<const float> values) const {
  bool finite = false;
  measure(check_, std::ssize(values), [&] { finite = measured_.finite(values); });
  return finite;
}

void MeasuredCompressor::add_values(std::span<const float> other, std::span<float> own) const {
  measure(add_, std::ssize(own), [&] { measured_.add_values(other, own); });
}

void MeasuredCompressor::average(std::span<const float> other, std::span<float> own) const {
  measure(add_, std::ssize(own), [&] { measured_.average(other, own); });
}

HostWork measure_host_work(const Compressor& compressor) {
  constexpr std::int64_t kBlocks = 64;
  constexpr int kRounds = 4;
  const std::size_t bytes = compressor.bytes(kBlock);
  std::vector<float> values(kBlocks * kBlock, 1.0F);
  std::vector<std::byte> packed(kBlocks * bytes), other(packed.size());
  const MeasuredCompressor measured(compressor);
  const auto work_on = [&](std::size_t block) {
    const auto floats = std::span(values).subspan(block * kBlock, kBlock);
    const auto from = std::span(packed).subspan(block * bytes, bytes);
    const auto to = std::span(other).subspan(block * bytes, bytes);
    (void)measured.finite(floats);
    measured.compress(floats, from);
    measured.copy(from, to);
    measured.add(from, floats, to);
    measured.decompress(from, floats);
  };
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t block = 0; block < kBlocks; ++block) work_on(block);
  return measured.work();
}

}  // namespace tandem
