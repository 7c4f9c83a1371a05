#include "data/loader.h"

#include <numeric>
#include <utility>

#include "tensor/error.h"

namespace tandem {
namespace {

std::vector<std::int64_t> epoch_order(std::int64_t size, const LoaderOptions& options,
                                      std::int64_t epoch) {
  if (options.training) return shuffled_order(size, options.seed, epoch);
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const Normalisation& normalisation,
               const Device& host, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      host_(host),
      options_(options),
      plan_{dataset_->size(), options.batch, options.training, options.workers, options.rank},
      pixels_(static_cast<std::size_t>(dataset_->image_shape().count())) {
  require(host.is_cpu(), "a loader makes its batches in host memory, not on {}", host.name());
  require(options.batch >= 1 && options.rank >= 0 && options.rank < options.workers &&
              batches_per_epoch() >= 1,
          "{} samples cannot be loaded in batches of {} by worker {} of {}", dataset_->size(),
          options.batch, options.rank, options.workers);
  for (std::size_t c = 0; c < normalisation.mean.size(); ++c) {
    scale_.push_back(1 / (255 * normalisation.deviation[c]));
    offset_.push_back(-normalisation.mean[c] / normalisation.deviation[c]);
  }
  require(static_cast<std::int64_t>(scale_.size()) == dataset_->image_shape()[-1],
          "{} channels cannot be normalised by {} means", dataset_->image_shape()[-1],
          scale_.size());
  thread_ = std::jthread([this](std::stop_token stop) { produce(std::move(stop)); });
}

Loader::~Loader() {
  thread_.request_stop();
  thread_.join();
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ > 0 || failure_; });
  if (count_ == 0) std::rethrow_exception(failure_);
  Batch batch = std::move(ready_[oldest_]);
  oldest_ = (oldest_ + 1) % kAhead;
  --count_;
  lock.unlock();
  changed_.notify_all();
  return batch;
}

void Loader::produce(std::stop_token stop) {
  try {
    for (std::int64_t epoch = 0;; ++epoch) {
      const auto order = epoch_order(dataset_->size(), options_, epoch);
      for (std::int64_t b = 0; b < batches_per_epoch(); ++b) {
        const Part part = plan_.part(b);
        Batch batch = make(std::span(order).subspan(static_cast<std::size_t>(part.begin),
                                                    static_cast<std::size_t>(part.size())),
                           epoch);
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return count_ < kAhead; })) return;
        ready_[(oldest_ + count_) % kAhead] = std::move(batch);
        ++count_;
        lock.unlock();
        changed_.notify_all();
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

Batch Loader::make(std::span<const std::int64_t> samples, std::int64_t epoch) {
  const Shape shape = dataset_->image_shape();
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{Tensor::empty({count, shape[0], shape[1], shape[2]}, Dtype::f32, host_),
              Tensor::empty({count}, Dtype::i32, host_)};
  float* image = batch.images.data<float>();
  std::int32_t* label = batch.labels.data<std::int32_t>();
  const std::size_t channels = scale_.size();
  const Random random =
      Random(options_.seed, Purpose::augmentation).split(static_cast<std::uint64_t>(epoch));

  for (const std::int64_t sample : samples) {
    *label++ = dataset_->read(sample, pixels_);
    if (options_.training && options_.augment) {
      Random mine = random.split(static_cast<std::uint64_t>(sample));
      options_.augment(pixels_, shape, mine);
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const float scale = scale_[c], offset = offset_[c];
      for (std::size_t i = c; i < pixels_.size(); i += channels)
        image[i] = static_cast<float>(pixels_[i]) * scale + offset;
    }
    image += pixels_.size();
  }
  return batch;
}

}  // namespace tandem
