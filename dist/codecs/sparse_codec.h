// What top-k and DGC have in common: workers send few elements of a block (sparse.h), and owners
// send the elements of the sum that are not zero, as they are.
#pragma once

#include "dist/codecs/block_codec.h"
#include "dist/codecs/sparse.h"

namespace tandem {

class SparseCodec : public BlockCodec {
 public:
  using BlockCodec::BlockCodec;

  std::size_t add(std::int64_t, std::span<const std::byte> from,
                  std::span<float> sum) const override {
    return add_sparse(from, sum);
  }
  std::size_t encode_sum(std::int64_t, std::span<const float> sum, std::byte* to) override {
    return encode_sparse(sum, to);
  }
  std::size_t decode_sum(std::int64_t, std::span<const std::byte> from,
                         std::span<float> values) const override {
    return decode_sparse(from, values);
  }

 protected:
  std::size_t block_bytes(std::span<const std::byte> from, std::int64_t count) const override {
    return sparse_bytes(from, count);
  }
  std::size_t sum_block_bytes(std::span<const std::byte> from, std::int64_t count) const override {
    return sparse_bytes(from, count);
  }
};

}  // namespace tandem
