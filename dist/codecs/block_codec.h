// A codec that encodes block by block (dist/block.h). A block's encoding does not depend on the
// blocks that are sent with it. So algorithms that cut the gradient differently still get the same
// bits.
//
//   worker r     values + residual ──encode──▶ bytes ─┐
//                residual ◀── what they leave out     │ add, in the order of the ring
//   owner        sum of all workers' bytes ◀──────────┘
//                sum ──encode_sum──▶ bytes ──▶ all workers: decode_sum
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dist/codecs/codec.h"
#include "tensor/backend.h"
#include "tensor/encoded_staging.h"

namespace tandem {

class BlockCodec : public Codec {
 public:
  explicit BlockCodec(const CodecContext& context);

  std::unique_ptr<AllReduce> make_sum(const AllReduce::Group& group,
                                      const BlockRange& range) override;
  BlockCodec* blocks() override { return this; }

  // The largest sizes of an encoded block of `count` elements, and of an encoded sum.
  virtual std::size_t most_bytes(std::int64_t count) const = 0;
  virtual std::size_t most_sum_bytes(std::int64_t count) const = 0;

  // Whether the codec must be told the norm of the whole gradient before it encodes.
  virtual bool needs_norm() const { return false; }
  virtual void set_norm(double norm) { (void)norm; }

  // Each returns how many bytes it has written or read. `block` is its number in the flat gradient.
  virtual std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) = 0;
  virtual std::size_t add(std::int64_t block, std::span<const std::byte> from,
                          std::span<float> sum) const = 0;
  // The owner's sum. It, too, may be rounded. All workers decode the same bytes.
  virtual std::size_t encode_sum(std::int64_t block, std::span<const float> sum, std::byte* to) = 0;
  virtual std::size_t decode_sum(std::int64_t block, std::span<const std::byte> from,
                                 std::span<float> values) const = 0;

  // Where each block of an encoded run, or of its encoded sum, begins. Throws if the bytes cannot
  // be decoded, or do not end with the run.
  std::vector<std::uint32_t> offsets_in(std::span<const std::byte> run, std::int64_t count) const;
  std::vector<std::uint32_t> sum_offsets_in(std::span<const std::byte> run,
                                            std::int64_t count) const;

  bool on_device() const override { return !context_.device.backend().is_cpu(); }
  // What this iteration does, for the device; only called if on_device().
  virtual Encoding encoding();

  // The same for consecutive blocks, of which the last may be short.
  std::size_t most_bytes_of_run(std::int64_t count) const;
  std::size_t most_sum_bytes_of_run(std::int64_t count) const;
  std::size_t encode_run(std::int64_t first_block, std::span<const float> values, std::byte* to);
  // Replaces the values. Throws if the bytes do not end with them.
  void decode_run(std::int64_t first_block, std::span<const std::byte> from,
                  std::span<float> values) const;

  // Sets what lies between parameters to 0, as it must stay. Decoded values may be anything there.
  void clear_padding(std::int64_t block, std::span<float> values) const;
  // The same elements of a range, counted from its beginning.
  std::vector<Segment> padding_in(const BlockRange& range) const;

 protected:
  // The size of the first block, of `count` elements, among these bytes. Throws if they cannot be
  // decoded.
  virtual std::size_t block_bytes(std::span<const std::byte> from, std::int64_t count) const;
  virtual std::size_t sum_block_bytes(std::span<const std::byte> from, std::int64_t count) const;

 private:
  struct Gap {
    std::int64_t first, end;  // in the flat gradient
  };
  std::vector<Gap> padding_;
};

// How many elements of a block are sent, of which RATIO should be: at least one.
std::int64_t part_of(double ratio, std::int64_t count);

// What encodings have left out, for all blocks of the flat gradient. Without error feedback it is
// forgotten at once.
class Residual {
 public:
  Residual(const CodecContext& context, std::int64_t count);

  // The values plus what was left out of them before. Write back what is left out now. Valid until
  // the next call.
  std::span<float> add_to(std::int64_t block, std::span<const float> values);

  // Undefined if nothing is remembered.
  const Tensor& values() const { return left_out_; }

  void visit(State& state, const std::string& name);

 private:
  bool remembers_;
  Tensor left_out_;             // where the codec encodes
  std::vector<float> passing_;  // one block, if nothing is remembered
};

}  // namespace tandem
