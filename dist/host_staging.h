// Staging for values that are in host memory already: a segment is packed where it is waited for,
// and unpacked where it is put. What is not compressed stays where it is; nothing is copied.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dist/compress/compressor.h"
#include "dist/timing/spans.h"
#include "tensor/device.h"
#include "tensor/staging.h"

namespace tandem {

class HostStaging : public Staging {
 public:
  // The arguments must outlive it.
  HostStaging(const Compressor& compressor, Spans& spans)
      : compressor_(compressor), spans_(spans) {}

  void begin(const Tensor& values, const EventPtr& ready, const Segments& segments) override;
  // The same for any memory. `length` is that of a segment.
  void begin(std::span<float> values, std::int64_t length);

  bool finite() override;
  std::vector<float> values() override { return {values_.begin(), values_.end()}; }
  void wait(std::int64_t segment) override;
  std::span<std::byte> packed(std::int64_t segment) override;
  void put(std::int64_t segment) override;
  EventPtr finish() override;

 private:
  std::span<float> values_of(std::int64_t segment) const;

  const Compressor& compressor_;
  Spans& spans_;
  std::span<float> values_;
  std::int64_t length_ = 0;
  std::vector<std::byte> packed_;  // of all values; empty where nothing is compressed
};

// For `count` values on the device, packed as the compressor does.
std::unique_ptr<Staging> make_staging(const Device& device, const Compressor& compressor,
                                      std::int64_t count, Spans& spans);

}  // namespace tandem
