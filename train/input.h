#pragma once

#include <algorithm>
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
  Batch bring(const Batch& from) {
    if (device_.is_cpu()) return from;
    auto place = std::ranges::find_if(
        places_, [&](const Batch& b) { return b.images.shape() == from.images.shape(); });
    if (place == places_.end()) {
      places_.push_back({Tensor::empty(from.images.shape(), dtype_, device_),
                         Tensor::empty(from.labels.shape(), Dtype::i32, device_)});
      place = places_.end() - 1;
    }
    const Feed::Move moves[] = {{from.images, place->images}, {from.labels, place->labels}};
    feed_->bring(moves);
    return *place;
  }

 private:
  Device device_;
  Dtype dtype_;
  std::unique_ptr<Feed> feed_;
  std::vector<Batch> places_;  // one per number of images
};

}  // namespace tandem
