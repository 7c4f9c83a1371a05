#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace tandem {

// What bytes stand for: value = byte · scale + offset, by channel (the last size).
struct ByteScale {
  std::vector<float> scale, offset;
};

// Brings tensors from the host to a device while the device computes.
class Feed {
 public:
  virtual ~Feed() = default;
  // Queues the copy and returns. What is queued afterwards sees `to` filled. Bytes become numbers
  // on the way where `to` is f32 or bf16. `from` is kept until it has been read.
  virtual void bring(const Tensor& from, const Tensor& to) = 0;
};

}  // namespace tandem
