#include "tensor/cuda/queue/encoded_staging.h"

#include <algorithm>
#include <limits>

namespace tandem::cuda {
namespace {

// Kernels read whole words, perhaps a little before and behind the bytes.
constexpr std::size_t kAlignment = 16;
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The flat gradient of a tensor that is remembered, or null.
template <class T = float>
T* data_of(const Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<T*>(tensor.raw()) : nullptr;
}

static_assert(sizeof(Encoding::Part) == sizeof(GradientPart));

LevelForm levels(const Encoding& e) { return {.bits = e.bits, .clip = e.clip, .key = e.key}; }
LevelForm sum_levels(const Encoding& e) {
  return {.bits = e.sum_bits, .clip = 0, .key = e.sum_key};
}
SignForm signs(const Tensor& residual) { return {.residual = data_of(residual)}; }
LargestForm largest(const Encoding& e) {
  return {.residual = data_of(e.residual), .k = e.k, .k_of_short = e.k_of_short};
}
ChosenForm chosen(const Encoding& e) {
  return {.residual = data_of(e.residual), .k = e.k, .k_of_short = e.k_of_short, .key = e.key};
}
VelocityForm velocities(const Encoding& e) {
  return {.velocity = data_of(e.velocity),
          .residual = data_of(e.residual),
          .sample = data_of<std::uint32_t>(e.sample),
          .thresholds = data_of(e.thresholds),
          .parts = data_of<GradientPart>(e.parts),
          .part_count = static_cast<int>(e.part_count),
          .momentum = e.momentum,
          .nesterov = e.nesterov,
          .remembers = e.remembers};
}

}  // namespace

CudaEncodedStaging::CudaEncodedStaging(const Context& context, const CopyStreams& streams,
                                       Layout layout)
    : context_(context), layout_(std::move(layout)), out_(streams.out), back_(streams.back) {
  context_.make_current();
  std::vector<std::int32_t> order;
  std::vector<MessagePlace> encoded, sums;
  std::size_t encoded_bytes = 0, message_bytes = 0, sum_bytes = 0, added_places = 0;
  int most_places = 0, own = 0;
  const auto workers = static_cast<std::size_t>(layout_.workers);
  for (std::size_t i = 0; i < layout_.segments.size(); ++i) {
    Part part{.first = static_cast<int>(order.size()),
              .encoded_at = encoded_bytes,
              .sum_at = sum_bytes,
              .messages_at = message_bytes,
              .offsets_at = added_places * workers,
              .own = own};
    layout_.segments[i].for_each_run(
        kEncodedBlock, [&](std::int64_t first, std::int64_t, std::int64_t n) {
          require(first % kEncodedBlock == 0, "an encoded segment begins within a block");
          for (std::int64_t at = first; at < first + n; at += kEncodedBlock)
            order.push_back(static_cast<std::int32_t>(at / kEncodedBlock));
        });
    part.places = static_cast<int>(order.size()) - part.first;
    part.pointers_at = static_cast<std::size_t>(own) * workers;
    encoded.push_back({.first = part.first, .last = part.first + part.places, .at = encoded_bytes});
    sums.push_back({.first = 0, .last = part.places, .at = sum_bytes});
    encoded_bytes += aligned(layout_.most_bytes[i]);
    sum_bytes += aligned(layout_.most_sum_bytes[i]);
    if (layout_.adds[i]) {
      ++own;
      message_bytes += aligned(layout_.most_bytes[i]) * workers;
      added_places += static_cast<std::size_t>(part.places);
      most_places = std::max(most_places, part.places);
      added_.emplace_back();
    }
    parts_.push_back(part);
  }
  places_ = static_cast<int>(order.size());
  require(sum_bytes < std::numeric_limits<std::uint32_t>::max(), "{} bytes of sums", sum_bytes);

  std::vector<Gap> gaps;
  for (const Segment& gap : layout_.gaps) gaps.push_back({.first = gap.first, .count = gap.count});
  order_ = on_device<std::int32_t>(order, back_);
  encoded_places_ = on_device<MessagePlace>(encoded, back_);
  sum_places_ = on_device<MessagePlace>(sums, back_);
  gaps_ = on_device<Gap>(gaps, back_);
  slots_ = on_device<std::byte>(order.size() * aligned(layout_.most_block_bytes));
  slot_sizes_ = on_device<std::uint32_t>(order.size());
  const auto most = static_cast<std::size_t>(most_places);
  sum_slots_ = on_device<std::byte>(most * aligned(layout_.most_block_sum_bytes));
  sum_slot_sizes_ = on_device<std::uint32_t>(most);
  encoded_ = pinned<std::byte>(encoded_bytes + kAlignment);
  messages_ = pinned<std::byte>(message_bytes + kAlignment);
  sums_ = pinned<std::byte>(sum_bytes + kAlignment);
  encoded_bytes_ = pinned<std::uint32_t>(parts_.size());
  sum_bytes_ = pinned<std::uint32_t>(parts_.size());
  offsets_ = pinned<std::uint32_t>(added_places * workers);
  sum_offsets_ = pinned<std::uint32_t>(order.size());
  pointers_ = pinned<const std::byte*>(static_cast<std::size_t>(own) * workers + 1);
  pointers_[static_cast<std::size_t>(own) * workers] = sums_.get();
  not_finite_ = pinned<int>(1);
}

CudaEncodedStaging::~CudaEncodedStaging() {
  cudaSetDevice(context_.device);
  cudaStreamSynchronize(out_);
  cudaStreamSynchronize(back_);
}

// Only finite() and encode() queue work, on the thread that sums. Else a shared stream would wait
// for values that are not ready, with others behind them that are.
void CudaEncodedStaging::begin(const Tensor& values, const EventPtr& ready,
                               const std::vector<Segment>& segments, Fill fill) {
  require(values.dtype() == Dtype::f32 && values.count() == layout_.count,
          "got {} values of type {}; this staging is for {} of type f32", values.count(),
          name_of(values.dtype()), layout_.count);
  require(segments == layout_.segments && fill == Fill::from_values,
          "an encoded staging has its own segments");
  values_ = values;
  ready_ = ready;
}

bool CudaEncodedStaging::finite() {
  context_.make_current();
  if (last_) last_->wait();  // until the last sums have been read
  CudaEvent::let_wait(out_, ready_);
  not_finite_[0] = 0;
  find_not_finite(queue(out_), values_.data<float>(), layout_.count, not_finite_.get());
  checked_.record(out_);
  checked_.wait();
  return not_finite_[0] == 0;
}

std::vector<float> CudaEncodedStaging::values() {
  std::vector<float> all(static_cast<std::size_t>(layout_.count));
  check(cudaMemcpyAsync(all.data(), values_.raw(), values_.bytes(), cudaMemcpyDeviceToHost, out_),
        "copying values to the host");
  check(cudaStreamSynchronize(out_), "copying values to the host");
  return all;
}

EncodedBlocks CudaEncodedStaging::blocks(int first, int places) const {
  return {.order = order_.get() + first,
          .places = places,
          .count = layout_.count,
          .first_block = layout_.first_block};
}

Queue CudaEncodedStaging::queue(cudaStream_t stream) const {
  return {.stream = stream, .multiprocessors = context_.queue.multiprocessors};
}

void CudaEncodedStaging::encode(const Encoding& e) {
  encoding_ = e;
  const Queue on = queue(out_);
  const EncodedBlocks all = blocks(0, places_);
  const Slots to{.data = slots_.get(),
                 .stride = aligned(layout_.most_block_bytes),
                 .sizes = slot_sizes_.get()};
  const float* values = values_.data<float>();
  switch (e.form) {
    case Encoding::Form::levels:
      cuda::encode(on, levels(e), all, values, to);
      break;
    case Encoding::Form::signs:
      cuda::encode(on, signs(e.residual), all, values, to);
      break;
    case Encoding::Form::largest:
      cuda::encode(on, largest(e), all, values, to);
      break;
    case Encoding::Form::chosen:
      cuda::encode(on, chosen(e), all, values, to);
      break;
    case Encoding::Form::velocities:
      if (e.new_thresholds)
        make_thresholds(on, data_of<GradientPart>(e.parts), static_cast<int>(e.part_count),
                        data_of<std::uint32_t>(e.sample), e.ratio, data_of(e.thresholds));
      cuda::encode(on, velocities(e), all, values, to);
      break;
  }
  gather(on, to, encoded_places_.get(), static_cast<int>(parts_.size()), encoded_.get(),
         encoded_bytes_.get());
  encoded_all_.record(out_);
}

void CudaEncodedStaging::wait(std::size_t) { encoded_all_.wait(); }

std::span<const std::byte> CudaEncodedStaging::encoded(std::size_t segment) {
  return {encoded_.get() + parts_[segment].encoded_at, encoded_bytes_[segment]};
}

std::span<std::byte> CudaEncodedStaging::message_memory(std::size_t segment, int worker) {
  const std::size_t most = layout_.most_bytes[segment];
  return {messages_.get() + parts_[segment].messages_at +
              static_cast<std::size_t>(worker) * aligned(most),
          most};
}

std::span<std::byte> CudaEncodedStaging::sum_memory(std::size_t segment) {
  return {sums_.get() + parts_[segment].sum_at, layout_.most_sum_bytes[segment]};
}

void CudaEncodedStaging::add(std::size_t segment, std::span<const Message> messages) {
  const Part& part = parts_[segment];
  const auto places = static_cast<std::size_t>(part.places);
  for (std::size_t worker = 0; worker < messages.size(); ++worker) {
    require(messages[worker].offsets.size() == places, "{} blocks instead of {}",
            messages[worker].offsets.size(), places);
    pointers_[part.pointers_at + worker] = messages[worker].data;
    std::ranges::copy(messages[worker].offsets, &offsets_[part.offsets_at + worker * places]);
  }
  const Queue on = queue(back_);
  const EncodedBlocks own = blocks(part.first, part.places);
  const EncodedMessages from{.data = &pointers_[part.pointers_at],
                             .offsets = &offsets_[part.offsets_at],
                             .workers = static_cast<int>(messages.size())};
  const Slots to{.data = sum_slots_.get(),
                 .stride = aligned(layout_.most_block_sum_bytes),
                 .sizes = sum_slot_sizes_.get()};
  switch (encoding_.form) {
    case Encoding::Form::levels:
      add_encoded(on, levels(encoding_), sum_levels(encoding_), own, from, to);
      break;
    case Encoding::Form::signs:
      add_encoded(on, signs(encoding_.residual_of_sums), own, from, to);
      break;
    case Encoding::Form::chosen:
      add_encoded(on, chosen(encoding_), own, from, to);
      break;
    case Encoding::Form::largest:
    case Encoding::Form::velocities:
      add_encoded(on, SparseForm{}, own, from, to);
      break;
  }
  gather(on, to, sum_places_.get() + segment, 1, sums_.get(), &sum_bytes_[segment]);
  added_[static_cast<std::size_t>(part.own)].record(back_);
}

std::span<const std::byte> CudaEncodedStaging::sum(std::size_t segment) {
  added_[static_cast<std::size_t>(parts_[segment].own)].wait();
  return sum_memory(segment).first(sum_bytes_[segment]);
}

void CudaEncodedStaging::put_sum(std::size_t segment, std::span<const std::uint32_t> offsets) {
  const Part& part = parts_[segment];
  require(std::ssize(offsets) == part.places, "{} blocks instead of {}", offsets.size(),
          part.places);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    sum_offsets_[static_cast<std::size_t>(part.first) + i] =
        static_cast<std::uint32_t>(part.sum_at) + offsets[i];
}

void CudaEncodedStaging::settle() {
  check(cudaStreamSynchronize(out_), "waiting for the GPU");
  check(cudaStreamSynchronize(back_), "waiting for the GPU");
}

EventPtr CudaEncodedStaging::finish() {
  const Queue on = queue(back_);
  const EncodedBlocks all = blocks(0, places_);
  const EncodedMessages from{
      .data = &pointers_[added_.size() * static_cast<std::size_t>(layout_.workers)],
      .offsets = sum_offsets_.get(),
      .workers = 1};
  float* values = values_.data<float>();
  switch (encoding_.form) {
    case Encoding::Form::levels:
      decode(on, sum_levels(encoding_), all, from, values);
      break;
    case Encoding::Form::signs:
      decode(on, signs(Tensor()), all, from, values);
      break;
    case Encoding::Form::chosen:
      decode(on, chosen(encoding_), all, from, values);
      break;
    case Encoding::Form::largest:
    case Encoding::Form::velocities:
      decode(on, SparseForm{}, all, from, values);
      break;
  }
  clear_gaps(on, gaps_.get(), static_cast<int>(layout_.gaps.size()), values);
  const auto event = events_->take(Event::Timing::off);
  event->record(back_);
  last_ = event;
  values_ = Tensor();
  return event;
}

}  // namespace tandem::cuda
