// The way of a flat f32 tensor from a device to the host, through a sum or an update over the
// network, and back. It goes in segments: while one is on the network, the next ones are on their
// way to the host and the ones before on their way back. Where compression is asked for, the device
// packs the values before the copy and unpacks them after it, so that fewer bytes are copied.
//
//   device   values ──pack──▶ packed                                  packed ──unpack──▶ values
//                                │ begin()                              ▲
//                                ▼                                      │ put(segment)
//   host                  wait(segment) ──▶ packed(segment) ──▶ packed(segment)
//                                            own values          to be put back
//
// One thread at a time makes the calls, in this order: begin; finite; for each segment wait, and
// put once its bytes are final; settle, where any were borrowed; finish. Either all segments are
// put or none. Whoever begins may leave the rest to another thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/event.h"
#include "tensor/tensor.h"

namespace tandem {

// How a device packs values, to the same bits as dist/compress does on the host.
enum class Packing { none, trunc16, quant8 };

// What `count` values become, from the beginning of a block on.
inline std::size_t packed_bytes(Packing packing, std::int64_t count, std::int64_t block) {
  const auto n = static_cast<std::size_t>(count);
  if (packing == Packing::none) return n * sizeof(float);
  if (packing == Packing::trunc16) return n * sizeof(std::uint16_t);
  return n + static_cast<std::size_t>((count + block - 1) / block) * sizeof(float);
}

// How values are cut.
struct Segments {
  std::int64_t length = 0;  // elements, a multiple of the block; the last segment may be shorter
  std::vector<std::int64_t> order;  // their numbers, in the order in which the host needs them
};

class Staging {
 public:
  virtual ~Staging() = default;

  // From `ready` on, the values may be read and written. They come to the host in the order of the
  // segments; if that is empty nothing comes, and the host fills all segments itself.
  virtual void begin(const Tensor& values, const EventPtr& ready, const Segments& segments) = 0;
  // Whether all values that come are numbers. Known before the first segment is there.
  virtual bool finite() = 0;
  // The values as begin() got them, for messages. To be called before anything is put.
  virtual std::vector<float> values() = 0;

  // Waits until this segment's values are on the host.
  virtual void wait(std::int64_t segment) = 0;
  // Its packed bytes: to be read and written between wait() and put(), to be read until finish().
  virtual std::span<std::byte> packed(std::int64_t segment) = 0;
  // The bytes are what the values are to become.
  virtual void put(std::int64_t segment) = 0;

  // Whether sums that lie elsewhere on the host had better be taken from there than be copied
  // first; the same for the same segments everywhere.
  virtual bool borrows() const { return false; }
  // Like put(), for bytes that lie anywhere on the host and stay as they are until settle().
  virtual void put_borrowed(std::int64_t segment, std::span<const std::byte> bytes) {
    require(false, "segment {}: {} bytes are lent to who does not borrow", segment, bytes.size());
  }
  // Waits until all that was borrowed has been read.
  virtual void settle() {}

  // The event after which the values are what was put. Null where they are already.
  virtual EventPtr finish() = 0;
};

}  // namespace tandem
