// Staging for values in host memory: the first wait() for a segment packs it, perhaps with others,
// and put() unpacks it. Uncompressed values are not copied: their packed bytes are the values
// themselves, one piece per block.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "dist/compress/compressor.h"
#include "dist/timing/spans.h"
#include "tensor/device.h"
#include "tensor/staging.h"

namespace tandem {

class HostStaging : public Staging {
 public:
  // What is packed at a time, if segments are long: a segment, so that it can be sent at once, or
  // also those between its blocks, in the order of addresses.
  enum class Packs { segments, rows };

  // The references must outlive this object.
  HostStaging(const Compressor& compressor, Spans& spans, Packs packs = faster())
      : compressor_(compressor), spans_(spans), packs_(packs) {}

  void begin(const Tensor& values, const EventPtr& ready, const std::vector<Segment>& segments,
             Fill fill) override;
  // The same for any memory.
  void begin(std::span<float> values, const std::vector<Segment>& segments);

  bool finite() override;
  std::vector<float> values() override { return {values_.begin(), values_.end()}; }
  void wait(std::size_t segment) override;
  Pieces packed(std::size_t segment) override;
  void put(std::size_t segment, const ConstPieces& bytes) override;
  EventPtr finish() override;

 private:
  static Packs faster();

  template <class Byte, class F>
  void for_each_run(std::size_t segment, const PiecesOf<Byte>& packed, F&& f) const;
  void pack_row(const Segment& one);

  const Compressor& compressor_;
  Spans& spans_;
  Packs packs_;
  std::span<float> values_;
  const std::vector<Segment>* segments_ = nullptr;
  HugePages packed_;                 // of all segments; empty without compression
  std::vector<std::size_t> places_;  // where each segment begins in packed_
  std::vector<bool> is_packed_;      // by segment
  std::vector<std::size_t> row_;     // of pack_row()
};

// For `count` values on the device, packed as the compressor packs them.
std::unique_ptr<Staging> make_staging(const Device& device, const Compressor& compressor,
                                      std::int64_t count, Spans& spans);

}  // namespace tandem
