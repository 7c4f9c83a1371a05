#include "data/loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

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
      as_read_(options.bytes || dataset_->dtype() != Dtype::u8) {
  require(host.is_cpu(), "a loader makes its batches in host memory, not on {}", host.name());
  require(options.batch >= 1 && options.rank >= 0 && options.rank < options.workers &&
              batches_per_epoch() >= 1,
          "{} samples cannot be loaded in batches of {} by worker {} of {}", dataset_->size(),
          options.batch, options.rank, options.workers);
  require(options.threads >= 1, "a loader cannot read with {} threads", options.threads);
  if (dataset_->dtype() == Dtype::u8) {
    const Shape shape = dataset_->image_shape();
    require(std::ssize(normalisation.mean) == shape[2],
            "{} channels cannot be normalised by {} means", shape[2], normalisation.mean.size());
    const ByteScale pixel = byte_scale(normalisation);
    for (std::int64_t x = 0; x < shape[1]; ++x) {
      scale_.insert(scale_.end(), pixel.scale.begin(), pixel.scale.end());
      offset_.insert(offset_.end(), pixel.offset.begin(), pixel.offset.end());
    }
  } else {
    require(!options.augment, "only pixels can be augmented");
  }
  if (options.first > 0) {
    epoch_ = options.first / batches_per_epoch();
    batch_ = options.first % batches_per_epoch();
    order_ = epoch_order(dataset_->size(), options_, epoch_);
  }
  for (int i = 0; i < options.threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { produce(stop); });
}

Loader::~Loader() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  Slot* slot = nullptr;
  ready_.wait(lock, [&] {
    slot = &slots_[oldest_];
    return count_ > 0 && (slot->complete() || slot->failed_for_good());
  });
  if (slot->failure) std::rethrow_exception(slot->failure);
  Batch batch = std::exchange(slot->batch, {});
  oldest_ = (oldest_ + 1) % kAhead;
  --count_;
  lock.unlock();
  room_.notify_all();
  return batch;
}

void Loader::produce(const std::stop_token& stop) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(dataset_->image_shape().count()));
  while (true) {
    const Claim mine = claim(stop);
    if (!mine.slot) return;
    std::size_t i = mine.begin;
    std::exception_ptr failure;
    try {
      for (; i < mine.end; ++i) fill(*mine.slot, i, pixels);
    } catch (...) {
      failure = std::current_exception();
    }
    finish(mine, failure, i);
  }
}

Loader::Claim Loader::claim(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto newest = [this]() -> Slot& { return slots_[(oldest_ + count_ - 1) % kAhead]; };
  const auto all_claimed = [&] {
    return count_ == 0 || newest().claimed == newest().samples.size();
  };
  while (!failed_ && all_claimed()) {
    if (!room_.wait(lock, stop, [&] { return failed_ || !all_claimed() || count_ < kAhead; }))
      return {};
    if (!failed_ && all_claimed()) open_slot();
  }
  if (failed_ || stop.stop_requested()) return {};
  // Several threads take small shares, so that they finish at about the same time. One thread takes
  // all.
  Slot& slot = newest();
  const std::size_t all = slot.samples.size(), threads = static_cast<std::size_t>(options_.threads);
  const std::size_t share = threads == 1 ? all : std::max<std::size_t>(1, all / (4 * threads));
  const Claim mine{&slot, slot.claimed, std::min(all, slot.claimed + share)};
  slot.claimed = mine.end;
  return mine;
}

// Starts the next batch. It may be empty: the last batch of an epoch can be too short for all
// workers.
void Loader::open_slot() {
  Slot& slot = slots_[(oldest_ + count_) % kAhead];
  ++count_;
  slot.samples.clear();
  slot.claimed = slot.finished = 0;
  try {
    if (epoch_ < 0 || batch_ == batches_per_epoch()) {
      order_ = epoch_order(dataset_->size(), options_, ++epoch_);
      batch_ = 0;
    }
    const Part part = plan_.part(batch_++);
    const Shape shape = dataset_->image_shape();
    slot.epoch = epoch_;
    slot.samples.assign(order_.begin() + part.begin, order_.begin() + part.end);
    slot.batch = {Tensor::empty({part.size(), shape[0], shape[1], shape[2]},
                                as_read_ ? dataset_->dtype() : Dtype::f32, host_),
                  Tensor::empty({part.size()}, Dtype::i32, host_)};
  } catch (...) {
    slot.failure = std::current_exception();
    failed_ = true;
  }
  if (slot.samples.empty() || failed_) ready_.notify_all();
  room_.notify_all();
}

void Loader::fill(Slot& slot, std::size_t i, std::span<std::uint8_t> pixels) const {
  const auto sample = slot.samples[i];
  if (as_read_) {
    const std::size_t bytes = slot.batch.images.bytes() / slot.samples.size();
    pixels = {reinterpret_cast<std::uint8_t*>(slot.batch.images.raw()) + i * bytes, bytes};
  }
  std::int32_t& label = slot.batch.labels.data<std::int32_t>()[i];
  if (options_.training) {
    Random random = Random(options_.seed, Purpose::augmentation)
                        .split(static_cast<std::uint64_t>(slot.epoch))
                        .split(static_cast<std::uint64_t>(sample));
    label = dataset_->read(sample, pixels, &random);
    if (options_.augment) options_.augment(pixels, dataset_->image_shape(), random);
  } else {
    label = dataset_->read(sample, pixels, nullptr);
  }
  if (as_read_) return;
  const std::size_t row = scale_.size();
  float* out = slot.batch.images.data<float>() + i * pixels.size();
  for (std::size_t begin = 0; begin < pixels.size(); begin += row)
    for (std::size_t k = 0; k < row; ++k)
      out[begin + k] = static_cast<float>(pixels[begin + k]) * scale_[k] + offset_[k];
}

// Samples are claimed in order, so all samples before a failed one have been claimed too. The
// earliest failure is known when all claimed samples are finished.
void Loader::finish(const Claim& claim, std::exception_ptr failure, std::size_t failed) {
  std::unique_lock lock(mutex_);
  Slot& slot = *claim.slot;
  slot.finished += claim.end - claim.begin;
  if (failure && (!slot.failure || failed < slot.failed)) {
    slot.failure = std::move(failure);
    slot.failed = failed;
  }
  if (slot.failure) failed_ = true;
  const bool tell = slot.complete() || slot.failed_for_good();
  const bool stop_all = failed_;
  lock.unlock();
  if (tell) ready_.notify_all();
  if (stop_all) room_.notify_all();
}

}  // namespace tandem
