// The path of a flat f32 tensor from a device to the host, through a sum or an update over the
// network, and back. It goes in segments: while one is on the network, later ones are on their way
// to the host and earlier ones on their way back. Where compression is asked for, the device packs
// the values before the copy and unpacks them after it, so that fewer bytes are copied.
//
//   device   values ──pack──▶ packed                                  packed ──unpack──▶ values
//                                │ begin()                              ▲
//                                ▼                                      │ put(segment, bytes)
//   host                  wait(segment) ──▶ packed(segment) ──▶ bytes: there or anywhere else
//                                            own values
//
// One thread at a time makes the calls, in this order: begin; finite; for each segment wait, and
// put once its sum is final; settle, where bytes were put from elsewhere; finish. Either all
// segments are put or none. The thread that begins may leave the rest to another one.
#pragma once

#include <algorithm>
#include <concepts>
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

// What a message carries: a stretch of blocks that lie at equal distances in a flat tensor. It may
// begin and end within a block.
struct Segment {
  std::int64_t first = 0;  // element at which it begins
  std::int64_t count = 0;  // elements
  std::int64_t step = 0;   // elements from one of its blocks to the next

  bool operator==(const Segment&) const = default;
  // Elements before its second block.
  std::int64_t head(std::int64_t block) const { return std::min(count, block - first % block); }
  // Calls f(element of the tensor, element of the segment, elements) for each contiguous run.
  template <class F>
  void for_each_run(std::int64_t block, F&& f) const {
    if (step == block) return f(first, std::int64_t{0}, count);
    std::int64_t at = first, i = 0;
    for (std::int64_t n = head(block); n > 0; n = std::min(block, count - i)) {
      f(at, i, n);
      i += n;
      at += step - at % block;
    }
  }
};

// Where each segment's packed bytes begin in memory that holds them one after the other; the last
// entry is the size of all. A short block takes as much room as a whole one, so that all blocks are
// aligned alike. A segment that begins within a block is behind the one that ends there.
inline std::vector<std::size_t> places_of(const std::vector<Segment>& segments, Packing packing,
                                          std::int64_t block) {
  std::vector<std::size_t> places;
  std::int64_t blocks = 0;
  std::size_t next = 0;
  for (const Segment& s : segments) {
    if (s.first % block == 0) next = packed_bytes(packing, blocks * block, block);
    blocks += (s.first % block + s.count + block - 1) / block - (s.first % block == 0 ? 0 : 1);
    places.push_back(next);
    next += packed_bytes(packing, s.count, block);
  }
  places.push_back(packed_bytes(packing, blocks * block, block));
  return places;
}

// The packed bytes of a segment. They are contiguous, or in pieces at equal distances.
template <class Byte>
struct PiecesOf {
  Byte* data = nullptr;
  std::size_t bytes = 0;  // of all pieces
  std::size_t head = 0;   // bytes of the first piece
  std::size_t piece = 0;  // of the others; the last one may be shorter
  std::size_t step = 0;   // from the end of a piece to the end of the next

  PiecesOf() = default;
  // Contiguous bytes are one piece.
  template <class Bytes>
  requires std::convertible_to<Bytes&&, std::span<Byte>> PiecesOf(Bytes&& whole)  // NOLINT
      : data(std::span<Byte>(whole).data()), bytes(std::size(whole)), head(bytes) {}
  PiecesOf(Byte* at, std::size_t all, std::size_t first, std::size_t other, std::size_t distance)
      : data(at), bytes(all), head(first), piece(other), step(distance) {}
  operator PiecesOf<const Byte>() const { return {data, bytes, head, piece, step}; }  // NOLINT

  bool contiguous() const { return bytes <= head; }
  // So many bytes from byte `first` on. They lie in one piece.
  std::span<Byte> at(std::size_t first, std::size_t size) const {
    if (first < head || contiguous()) return {data + first, size};
    const std::size_t behind = first - head;
    return {data + head + behind / piece * step + (step - piece) + behind % piece, size};
  }
  std::span<Byte> whole() const {
    require(contiguous(), "bytes in pieces were taken for contiguous ones");
    return {data, bytes};
  }
};
using Pieces = PiecesOf<std::byte>;
using ConstPieces = PiecesOf<const std::byte>;

class Staging {
 public:
  virtual ~Staging() = default;

  enum class Fill { from_values, by_host };

  // From `ready` on, the values may be read and written. The segments cover them; they come to the
  // host in this order, or the host fills all of them itself. They must outlive finish().
  virtual void begin(const Tensor& values, const EventPtr& ready,
                     const std::vector<Segment>& segments, Fill fill = Fill::from_values) = 0;
  // Whether all values that come are numbers. Known before the first segment is there.
  virtual bool finite() = 0;
  // The values as begin() got them, for messages. To be called before anything is put.
  virtual std::vector<float> values() = 0;

  // Waits until this segment's values are on the host.
  virtual void wait(std::size_t segment) = 0;
  // Its packed bytes: to be read and written between wait() and put(), to be read until finish().
  virtual Pieces packed(std::size_t segment) = 0;
  // The values are to become these bytes, which may lie anywhere on the host. Where that is not
  // packed(segment), they must not change until settle().
  virtual void put(std::size_t segment, const ConstPieces& bytes) = 0;
  // Waits until all that was put from elsewhere has been read.
  virtual void settle() {}

  // The event after which the values are what was put. Null where they are already.
  virtual EventPtr finish() = 0;
};

}  // namespace tandem
