#pragma once

#include <memory>
#include <vector>

#include "data/loader.h"
#include "tensor/backend.h"

namespace tandem {

// Brings batches from the loader to where the worker computes: always into the same tensors for the
// same sizes, because a recorded step reads those. Where the host itself computes, nothing moves.
class Input {
 public:
  // `images` is the type that images become. Where a device is fed, they come as bytes, or as f32.
  Input(const Device& device, Dtype images, const Normalisation& normalisation)
      : device_(device),
        dtype_(images),
        feed_(device.backend().make_feed(byte_scale(normalisation))) {}

  // Valid until the next call; the loader's batch may go.
  Batch bring(const Batch& from);

 private:
  Device device_;
  Dtype dtype_;
  std::unique_ptr<Feed> feed_;
  std::vector<Batch> places_;  // one per number of images
};

}  // namespace tandem
