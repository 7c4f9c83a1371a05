// Lossy compression of gradients, embedded in the ring (Pipe-SGD, section 3.2): every hop receives
// compressed bytes, decompresses, adds in f32 and compresses again.
//
// A run of `count` elements begins at a block boundary of the flat gradient; its last block may be
// short. It compresses to bytes(count) bytes, whatever its values, so both ends of a message know
// the size. Compression is idempotent: compressing decompressed values again does not change them.
// Calls are const and may come from any thread.
//
// NaN and infinity stay visible: they decompress to values that are not finite (for those
// with a scale per block, the whole block does). They never become an ordinary number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "tensor/staging.h"

namespace tandem {

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual const char* name() const = 0;
  virtual std::size_t bytes(std::int64_t count) const = 0;
  virtual Packing packing() const = 0;  // the device's name for the same format
  bool lossless() const { return packing() == Packing::none; }
  // Whether a run may also begin and end within a block.
  bool divides_blocks() const {
    return packing() == Packing::none || packing() == Packing::trunc16;
  }

  virtual void compress(std::span<const float> values, std::span<std::byte> packed) const = 0;
  virtual void decompress(std::span<const std::byte> packed, std::span<float> values) const = 0;

  // One hop of the ring: packed = compress(decompress(received) + values), in one pass. `packed`
  // may be `received`.
  virtual void add(std::span<const std::byte> received, std::span<const float> values,
                   std::span<std::byte> packed) const = 0;
  // The same for `count` packed values, at most a block. `sum` may be `received` or `own`.
  virtual void add_packed(std::span<const std::byte> received, std::span<const std::byte> own,
                          std::int64_t count, std::span<std::byte> sum) const;

  // The rest of what hosts do with the content of gradients. In a simulation they have none.
  virtual HugePages memory(std::size_t bytes) const;
  virtual void copy(std::span<const std::byte> from, std::span<std::byte> to) const;
  virtual bool finite(std::span<const float> values) const;
  // own = own + other.
  virtual void add_values(std::span<const float> other, std::span<float> own) const;
  // own = (other + own) / 2; the same bits as Backend::weighted_sum() gives.
  virtual void average(std::span<const float> other, std::span<float> own) const;
};

// Each is implemented in the file of the same name.
std::unique_ptr<Compressor> make_none();
std::unique_ptr<Compressor> make_trunc16();
std::unique_ptr<Compressor> make_quant8();
std::unique_ptr<Compressor> make_terngrad_ring();

// By name; throws UserError for any other name.
const std::vector<std::string>& compressor_names();
std::unique_ptr<Compressor> make_compressor(const std::string& name);

}  // namespace tandem
