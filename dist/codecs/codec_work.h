// How long a host needs to encode and decode blocks (block_codec.h), and how many bytes they take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/codecs/codec_table.h"

namespace tandem {

// In seconds per element of the gradient.
struct CodecWork {
  double encode = 0;
  double add = 0;  // decoding what a worker sends, and adding it
  double encode_sum = 0, decode_sum = 0;
};

// Measures it on a few blocks, which takes milliseconds. The codec must encode blocks.
CodecWork measure_codec_work(const CodecChoice& choice);

struct EncodedSizes {
  std::size_t sent = 0;      // what a worker sends to the owner, as a mean
  std::size_t returned = 0;  // the sum
};

// Of a block of `count` elements, with gradients of normally distributed values that are
// independent between workers. With most codecs, any values have these sizes. The largest elements
// of workers lie in different places here, as far as chance allows.
EncodedSizes sizes_of_block(const CodecChoice& choice, int workers, std::int64_t count);

}  // namespace tandem
