// A staging whose device encodes the values where they are, adds encodings, and decodes their sum,
// so that only encoded bytes are moved. dist/codecs has the formulas; the bytes are the same.
//
//   device   values ──encode()──┐               ┌─▶ add() ──┐              ┌─▶ decode ──▶ values
//                               ▼               │           ▼              │ finish()
//   host             wait(), encoded() ──▶ messages       sum() ──▶ sum_memory(), put_sum()
//
// Only one thread at a time may make calls, in this order: begin(); finite(); encode(); wait() and
// encoded() for each segment; add() and sum() for those that this rank adds; put_sum() for all
// segments; finish(). The device reads and writes the host's memory itself, so messages must lie in
// memory of such stagings, of this process.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tensor/staging.h"

namespace tandem {

// What a codec does in an iteration, as a device needs it. Tensors are on the device and as long as
// the flat gradient, unless stated otherwise; undefined ones mean that nothing is remembered.
struct Encoding {
  enum class Form {
    levels,     // rounded at random (dist/codecs/levels.h)
    signs,      // and two means (onebit.cpp)
    largest,    // elements of a block (topk.cpp)
    chosen,     // at random, the same on all workers (randomk.cpp)
    velocities  // above the thresholds of their tensors (dgc.cpp)
  };
  Form form = Form::levels;
  Tensor residual, residual_of_sums;

  std::uint64_t key = 0, sum_key = 0;  // of this iteration's random numbers
  int bits = 0, sum_bits = 0;          // of levels
  float clip = 0;                      // of levels: in standard deviations; 0: nothing is cut
  int k = 0, k_of_short = 0;           // elements of a whole block, and of the short one

  struct Part {  // a trained tensor, for velocities
    std::int64_t first = 0, end = 0;
    std::int64_t stride = 1;     // the distance of elements in the sample
    std::int64_t sample_at = 0;  // where its sample begins
    std::int64_t sample_count = 0;
    bool whole = false;  // all of it is sent
  };
  Tensor velocity;
  Tensor sample;      // of magnitudes, as 32-bit patterns
  Tensor thresholds;  // by part
  Tensor parts;       // of Part, as bytes
  std::int64_t part_count = 0;
  bool new_thresholds = false;  // first make them from the sample, which has `ratio` above them
  double ratio = 0;
  float momentum = 0;
  bool nesterov = false;
  bool remembers = true;  // what is not sent
};

class EncodedStaging : public Staging {
 public:
  struct Layout {
    std::int64_t count = 0;        // elements
    std::int64_t first_block = 0;  // where they begin in the flat gradient
    std::vector<Segment> segments;
    std::vector<std::size_t> most_bytes, most_sum_bytes;         // by segment
    std::size_t most_block_bytes = 0, most_block_sum_bytes = 0;  // of a block
    std::vector<bool> adds;  // by segment: whether this rank does
    int workers = 1;
    std::vector<Segment> gaps;  // between parameters; they stay 0
  };
  // An encoded segment of any worker, and where its blocks begin.
  struct Message {
    const std::byte* data;
    std::vector<std::uint32_t> offsets;
  };

  virtual void encode(const Encoding& encoding) = 0;
  virtual std::span<const std::byte> encoded(std::size_t segment) = 0;

  // Where the messages of the other workers may be received, and the sum of any segment.
  virtual std::span<std::byte> message_memory(std::size_t segment, int worker) = 0;
  virtual std::span<std::byte> sum_memory(std::size_t segment) = 0;
  // Adds the messages in this order and encodes their sum. Only queued; they must stay until sum()
  // has returned its bytes, which are in sum_memory().
  virtual void add(std::size_t segment, std::span<const Message> messages) = 0;
  virtual std::span<const std::byte> sum(std::size_t segment) = 0;
  // The sum is in sum_memory(); its blocks begin there.
  virtual void put_sum(std::size_t segment, std::span<const std::uint32_t> offsets) = 0;

  Pieces packed(std::size_t) final { throw std::logic_error("values are encoded on the device"); }
  void put(std::size_t, const ConstPieces&) final {
    throw std::logic_error("values are encoded on the device");
  }
};

}  // namespace tandem
