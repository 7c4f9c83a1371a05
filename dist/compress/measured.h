// Measures what a rank's host does for communication: a compressor that passes every call on to
// another one, and adds up elements and seconds. --profile derives HostCost from them
// (dist/timing/profile.h).
#pragma once

#include <atomic>

#include "base/clock.h"
#include "dist/compress/compressor.h"

namespace tandem {

struct HostWork {
  struct Total {
    double elements = 0, seconds = 0;

    void operator+=(const Total& other) {
      elements += other.elements;
      seconds += other.seconds;
    }
    // 0 if there was nothing to do.
    double per_element() const { return elements > 0 ? seconds / elements : 0; }
  };
  Total check, compress, decompress;
  Total add;   // add(), add_packed(), add_values() and average()
  Total copy;  // elements that the copied bytes hold
};

class MeasuredCompressor : public Compressor {
 public:
  // `measured` must outlive it.
  explicit MeasuredCompressor(const Compressor& measured);

  // Since the construction or the last restart().
  HostWork work() const;
  // No call may be under way.
  void restart();

  const char* name() const override { return measured_.name(); }
  std::size_t bytes(std::int64_t count) const override { return measured_.bytes(count); }
  Packing packing() const override { return measured_.packing(); }

  void compress(std::span<const float> values, std::span<std::byte> packed) const override;
  void decompress(std::span<const std::byte> packed, std::span<float> values) const override;
  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override;
  void add_packed(std::span<const std::byte> received, std::span<const std::byte> own,
                  std::int64_t count, std::span<std::byte> sum) const override;
  HugePages memory(std::size_t bytes) const override { return measured_.memory(bytes); }
  void copy(std::span<const std::byte> from, std::span<std::byte> to) const override;
  bool finite(std::span<const float> values) const override;
  void add_values(std::span<const float> other, std::span<float> own) const override;
  void average(std::span<const float> other, std::span<float> own) const override;

 private:
  // Calls come from any thread.
  struct Counter {
    std::atomic<std::int64_t> count = 0, time = 0;  // elements or bytes; ticks of the clock
  };
  template <class F>
  void measure(Counter& counter, std::int64_t count, F&& call) const;

  const Compressor& measured_;
  Clock::duration reading_;  // what it takes to read the clock: a block takes little more
  mutable Counter check_, compress_, decompress_, add_, copy_;
};

// All kinds of work on a few blocks, which takes milliseconds. For a run that has not done all
// kinds.
HostWork measure_host_work(const Compressor& compressor);

}  // namespace tandem
