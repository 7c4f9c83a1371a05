// Kernels for codecs (dist/codecs), with the same bits. A CUDA block handles a block of 2,048
// elements. The conventions of kernels.h hold. Encoded bytes may be pinned host memory, which the
// GPU reads and writes over the bus.
#pragma once

#include "tensor/cuda/kernels/kernels.h"

namespace tandem::cuda {

inline constexpr int kEncodedBlock = 2048;  // elements

// Blocks of a range of the flat gradient, in the order of messages.
struct EncodedBlocks {
  const std::int32_t*
      order;  // on the device: the block at each place, counted from the range's first
  int places;
  std::int64_t count;        // elements of the range; its last block may be short
  std::int64_t first_block;  // of the range
};

// Memory for the encoded block of each place.
struct Slots {
  std::byte* data;
  std::size_t stride;    // a multiple of 16
  std::uint32_t* sizes;  // by place
};

// Encoded segments of several workers.
struct EncodedMessages {
  const std::byte* const* data;
  const std::uint32_t* offsets;  // offsets[worker · places + place]
  int workers;
};

// See Encoding in tensor/encoded_staging.h. `residual` and the others point to the flat gradient's
// first element.
struct LevelForm {
  int bits;
  float clip;
  std::uint64_t key;
};
struct SignForm {
  float* residual;
};
struct LargestForm {
  float* residual;
  int k, k_of_short;
};
struct ChosenForm {
  float* residual;
  int k, k_of_short;
  std::uint64_t key;
};
struct GradientPart {
  std::int64_t first, end, stride, sample_at, sample_count;
  bool whole;
};
struct VelocityForm {
  float* velocity;
  float* residual;
  std::uint32_t* sample;
  const float* thresholds;
  const GradientPart* parts;
  int part_count;
  float momentum;
  bool nesterov, remembers;
};
struct SparseForm {};  // sums of LargestForm and VelocityForm

// Encodes the values of a range.
void encode(const Queue& on, const LevelForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to);
void encode(const Queue& on, const SignForm& form, const EncodedBlocks& blocks, const float* values,
            const Slots& to);
void encode(const Queue& on, const LargestForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to);
void encode(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to);
void encode(const Queue& on, const VelocityForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to);

// Adds messages in their order and encodes the sum.
void add_encoded(const Queue& on, const LevelForm& form, const LevelForm& of_sum,
                 const EncodedBlocks& blocks, const EncodedMessages& from, const Slots& to);
void add_encoded(const Queue& on, const SignForm& of_sum, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to);
void add_encoded(const Queue& on, const SparseForm& form, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to);
void add_encoded(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to);

// Writes the values of one message.
void decode(const Queue& on, const LevelForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values);
void decode(const Queue& on, const SignForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values);
void decode(const Queue& on, const SparseForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values);
void decode(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values);

// A message: encoded blocks without gaps.
struct MessagePlace {
  int first, last;  // places
  std::size_t at;   // where it begins in the memory for all messages
};
void gather(const Queue& on, const Slots& from, const MessagePlace* messages, int count,
            std::byte* to, std::uint32_t* bytes);

// The threshold of each part: `ratio` of its sample is not below it.
void make_thresholds(const Queue& on, const GradientPart* parts, int count,
                     const std::uint32_t* sample, double ratio, float* thresholds);

struct Gap {
  std::int64_t first, count;
};
void clear_gaps(const Queue& on, const Gap* gaps, int count, float* values);
// *not_finite becomes 1 if a value is NaN or infinite.
void find_not_finite(const Queue& on, const float* values, std::int64_t count, int* not_finite);

}  // namespace tandem::cuda
