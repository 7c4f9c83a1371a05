// Prepares batches in the background. The loader's own threads read, augment and normalise the next
// batches while the worker computes. They share the samples of a batch, oldest batch first. So
// batches come out in order, and their contents do not depend on the threads.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "tensor/tensor.h"

namespace tandem {

struct Batch {
  Tensor images;  // [n, height, width, channels]; f32, or u8 as they were read
  Tensor labels;  // i32 [n]
};

struct LoaderOptions {
  std::int64_t batch = 1;  // global
  bool training = false;   // shuffle, augment and leave out a short last batch
  std::uint64_t seed = 0;
  std::int64_t workers = 1;
  std::int64_t rank = 0;
  Augment augment = {};    // may be empty
  bool bytes = false;      // leave pixels as u8; the user of the batch normalises them
  std::int64_t first = 0;  // the batch to begin with, counted over all epochs
  int threads = 1;         // reading threads; more than one pays if images must be decoded
};

class Loader {
 public:
  // `host` is a CPU device: the worker's own, or host memory from which a GPU is fed.
  Loader(std::shared_ptr<const Dataset> dataset, const Normalisation& normalisation,
         const Device& host, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t samples() const { return dataset_->size(); }
  std::int64_t batches_per_epoch() const { return plan_.batches_per_epoch(); }

  // The next batch, epoch after epoch, without end. Waits if it is not ready. If preparing it
  // failed, throws the exception of the first sample that failed.
  Batch next();

 private:
  // A batch, ready or in preparation.
  struct Slot {
    Batch batch;
    std::int64_t epoch = 0;
    std::vector<std::int64_t> samples;
    std::size_t claimed = 0, finished = 0;  // samples, in their order
    std::exception_ptr failure;             // of the earliest sample that failed
    std::size_t failed = 0;

    bool complete() const { return finished == samples.size() && !failure; }
    bool failed_for_good() const { return failure && finished == claimed; }
  };
  // Consecutive samples of a slot, for one thread.
  struct Claim {
    Slot* slot = nullptr;
    std::size_t begin = 0, end = 0;
  };

  void produce(const std::stop_token& stop);
  Claim claim(const std::stop_token& stop);  // no slot if the loader stops
  void open_slot();
  void fill(Slot& slot, std::size_t i, std::span<std::uint8_t> pixels) const;
  void finish(const Claim& claim, std::exception_ptr failure, std::size_t failed);

  std::shared_ptr<const Dataset> dataset_;
  Device host_;
  LoaderOptions options_;
  BatchPlan plan_;
  bool as_read_;                       // samples are passed on unchanged
  std::vector<float> scale_, offset_;  // else value = pixel · scale + offset; for a row's bytes

  // The slots from `oldest_` on are in use, `count_` of them; samples are claimed in the newest.
  static constexpr std::size_t kAhead = 4;
  std::mutex mutex_;
  std::condition_variable_any room_;   // for the threads
  std::condition_variable_any ready_;  // for next()
  std::array<Slot, kAhead> slots_;
  std::size_t oldest_ = 0, count_ = 0;
  bool failed_ = false;  // nothing more is claimed
  std::int64_t epoch_ = -1, batch_ = 0;
  std::vector<std::int64_t> order_;  // of the epoch

  std::vector<std::jthread> threads_;  // last, so that they start after all else is constructed
};

}  // namespace tandem
