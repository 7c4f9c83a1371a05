// Makes batches in the background. A thread of the loader's own reads, augments and normalises the
// next batches while the worker computes, and hands them over in order.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

namespace tandem {

struct Batch {
  Tensor images;  // f32 [n, height, width, channels], normalised
  Tensor labels;  // i32 [n]
};

// Changes an image in place before it is normalised. The random numbers belong to (seed, epoch,
// sample), so they depend neither on the number of workers nor on who reads the sample.
using Augment =
    std::function<void(std::span<std::uint8_t> pixels, const Shape& shape, Random& random)>;

struct LoaderOptions {
  std::int64_t batch = 1;  // global
  bool training = false;   // shuffle, augment and leave out a short last batch
  std::uint64_t seed = 0;
  std::int64_t workers = 1;
  std::int64_t rank = 0;
  Augment augment;  // may be empty
};

class Loader {
 public:
  // `host` is a CPU device: the worker's own, or the place from which a GPU is fed.
  Loader(std::shared_ptr<const Dataset> dataset, const Normalisation& normalisation,
         const Device& host, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches_per_epoch() const { return plan_.batches_per_epoch(); }

  // The next batch, epoch after epoch, without end. Waits if it is not ready; throws what went
  // wrong in making it.
  Batch next();

 private:
  void produce(std::stop_token stop);
  Batch make(std::span<const std::int64_t> samples, std::int64_t epoch);

  std::shared_ptr<const Dataset> dataset_;
  Device host_;
  LoaderOptions options_;
  BatchPlan plan_;
  std::vector<float> scale_, offset_;  // value = pixel · scale + offset, per channel
  std::vector<std::uint8_t> pixels_;   // one image

  // Batches on the way from the thread to next(), oldest first.
  static constexpr std::size_t kAhead = 3;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<Batch, kAhead> ready_;
  std::size_t oldest_ = 0, count_ = 0;
  std::exception_ptr failure_;

  std::jthread thread_;  // last: starts when all else is there
};

}  // namespace tandem
