#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace tandem {

// What bytes stand for: value = byte · scale + offset, by channel (the last size).
struct ByteScale {
  std::vector<float> scale, offset;
};

// Brings batches from the host to a device while the device computes.
class Feed {
 public:
  virtual ~Feed() = default;

  // Bytes become numbers on the way where `to` is f32 or bf16, and f32 becomes bf16.
  struct Move {
    Tensor from, to;
  };
  // Queues the copies and returns. What is queued afterwards sees each `to` filled. What they are
  // copied from is kept until it has been read. The number of moves is the same in every call.
  virtual void bring(std::span<const Move> moves) = 0;
};

}  // namespace tandem
