#pragma once

#include <memory>
#include <vector>

#include "data/loader.h"
#include "tensor/backend.h"

namespace tandem {

// Copies batches from the loader to the worker's device. Batches of the same size always go into
// the same tensors, because a recorded step reads from those addresses. On a CPU nothing is copied.
class Input {
 public:
  // `images` is the dtype that images get. The loader's images are bytes or f32.
  Input(const Device& device, Dtype images, const Normalisation& normalisation)
      : device_(device),
        dtype_(images),
        feed_(device.backend().make_feed(byte_scale(normalisation))) {}

  // The result is valid until the next call. `from` need not stay alive.
  Batch bring(const Batch& from);

 private:
  Device device_;
  Dtype dtype_;
  std::unique_ptr<Feed> feed_;
  std::vector<Batch> places_;  // one per number of images
};

}  // namespace tandem
