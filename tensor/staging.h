// Moves a flat f32 tensor from a device to the host, where it is summed or updated over the
// network, and back. It moves in segments: while one is on the network, later ones are copied to
// the host and earlier ones back to the device. With compression, the device packs the values
// before the copy and unpacks them after it, so that fewer bytes are copied.
//
//   device   values ──pack──▶ packed                                  packed ──unpack──▶ values
//                                │ begin()                              ▲
//                                ▼                                      │ put(segment, bytes)
//   host                  wait(segment) ──▶ packed(segment) ──▶ bytes: the same or others
//                                            own values
//
// Only one thread at a time may make calls, in this order: begin(); finite(); for each segment
// wait(), and put() once its sum is final; settle(), if bytes were put from elsewhere; finish().
// Put either all segments or none. Another thread may take over after begin().
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

// How a device packs values. It writes the same bits as dist/compress on the host. Only hosts have
// `ternary`.
enum class Packing { none, trunc16, quant8, ternary };

// The size of `count` packed values that begin at a block boundary.
inline std::size_t packed_bytes(Packing packing, std::int64_t count, std::int64_t block) {
  const auto n = static_cast<std::size_t>(count);
  if (packing == Packing::none) return n * sizeof(float);
  if (packing == Packing::trunc16) return n * sizeof(std::uint16_t);
  const std::size_t scales = static_cast<std::size_t>((count + block - 1) / block) * sizeof(float);
  if (packing == Packing::quant8) return scales + n;
  return scales + (n + 7) / 8 * 2;  // 2 bits per element, in groups of 8
}

// The content of a message: blocks at equal distances in a flat tensor. A segment may begin and end
// within a block.
struct Segment {
  std::int64_t first = 0;  // its first element in the tensor
  std::int64_t count = 0;  // elements
  std::int64_t step = 0;   // elements from the start of a block to the start of the next

  bool operator==(const Segment&) const = default;
  // The number of elements in its first block.
  std::int64_t head(std::int64_t block) const { return std::min(count, block - first % block); }
  // Calls f(index in the tensor, index in the segment, count) for each contiguous run.
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

// Where each segment's packed bytes begin in memory that holds all segments; the last entry is the
// total size. A short block takes as much room as a whole one, so that all blocks have the same
// alignment. A segment that begins within a block directly follows the segment before it.
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

// The packed bytes of a segment. They are contiguous or consist of pieces at equal distances.
template <class Byte>
struct PiecesOf {
  Byte* data = nullptr;
  std::size_t bytes = 0;  // of all pieces
  std::size_t head = 0;   // bytes of the first piece
  std::size_t piece = 0;  // bytes of the other pieces; the last one may be shorter
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
  // Bytes first … first+size-1, which must lie in one piece.
  std::span<Byte> at(std::size_t first, std::size_t size) const {
    if (first < head || contiguous()) return {data + first, size};
    const std::size_t behind = first - head;
    return {data + head + behind / piece * step + (step - piece) + behind % piece, size};
  }
  std::span<Byte> whole() const {
    require(contiguous(), "the packed bytes are in pieces, not contiguous");
    return {data, bytes};
  }
};
using Pieces = PiecesOf<std::byte>;
using ConstPieces = PiecesOf<const std::byte>;

class Staging {
 public:
  virtual ~Staging() = default;

  enum class Fill { from_values, by_host };

  // The values may be read and written after `ready`. The segments cover all values. They are
  // copied to the host in this order, unless the host fills them itself (by_host). Values and
  // segments must stay alive until finish().
  virtual void begin(const Tensor& values, const EventPtr& ready,
                     const std::vector<Segment>& segments, Fill fill = Fill::from_values) = 0;
  // Whether all values are finite. Does not wait for a copy to the host.
  virtual bool finite() = 0;
  // The values as begin() got them, for error messages. Call it before the first put().
  virtual std::vector<float> values() = 0;

  // Waits until this segment's values are on the host. They arrive in the order of begin().
  virtual void wait(std::size_t segment) = 0;
  // Its packed bytes. The caller may write them between wait() and put(), and read them from wait()
  // until finish().
  virtual Pieces packed(std::size_t segment) = 0;
  // Sets the segment's values to these packed bytes, which may be anywhere in host memory. Unless
  // they are packed(segment), they must not change before settle() returns.
  virtual void put(std::size_t segment, const ConstPieces& bytes) = 0;
  // Waits until all bytes that were put from elsewhere have been read.
  virtual void settle() {}

  // Returns the event after which the values are what was put; null if they already are.
  virtual EventPtr finish() = 0;
};

}  // namespace tandem
