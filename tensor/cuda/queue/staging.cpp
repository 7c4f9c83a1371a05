#include "tensor/cuda/queue/staging.h"

#include <algorithm>

namespace tandem::cuda {
namespace {

constexpr std::size_t kCopyBytes = 4 << 20;  // takes 80 µs
constexpr std::size_t kAhead = 4;            // copies queued ahead

}  // namespace

// High priority, so that these short kernels run before the long ones of the computation.
CopyStream::CopyStream() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "querying stream priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
        "creating a stream");
}

CudaStaging::CudaStaging(const Context& context, const CopyStreams& streams, Packing packing,
                         std::int64_t count, std::int64_t block)
    : context_(context),
      packing_(packing),
      count_(count),
      block_(block),
      out_(streams.out),
      back_(streams.back),
      not_finite_(pinned<int>(1)) {
  const std::int64_t blocks = (count + block - 1) / block;
  const std::size_t bytes = packed_bytes(packing, blocks * block, block);
  if (bytes > kCopyBytes * kAhead) {
    own_out_ = std::make_unique<CopyStream>();
    out_ = *own_out_;
  }
  packed_ = on_device<std::byte>(bytes);
  host_ = pinned<std::byte>(bytes);
  order_ = on_device<std::int32_t>(static_cast<std::size_t>(blocks));
}

CudaStaging::~CudaStaging() {
  cudaSetDevice(context_.device);
  cudaStreamSynchronize(out_);
  cudaStreamSynchronize(back_);
}

void CudaStaging::begin(const Tensor& values, const EventPtr& ready,
                        const std::vector<Segment>& segments, Fill fill) {
  require(values.dtype() == Dtype::f32 && values.count() == count_,
          "got {} values of type {}; this staging is for {} of type f32", values.count(),
          name_of(values.dtype()), count_);
  context_.make_current();
  values_ = values;
  put_ = from_elsewhere_ = false;
  if (segments != segments_) lay_out(segments);
  queued_ = arrived_ = 0;
  for (std::size_t g = 0; g < used_; ++g) {
    groups_[g].to_put = 0;
    for (std::size_t i = groups_[g].first; i < groups_[g].last; ++i)
      groups_[g].to_put += segments_[i].count > 0;
  }
  if (fill == Fill::by_host) {
    CudaEvent::let_wait(back_, ready);
    if (last_) last_->wait();  // the caller may write host memory at once
    return;
  }
  CudaEvent::let_wait(out_, ready);
  CudaEvent::let_wait(out_, last_);
  pack();
  copy_to_host(own_out_ ? kAhead : used_);
}

// Needed only if the segments change. Waits until no kernel reads the old order, if there is one.
// Otherwise it does not wait for out_, on which other stagings may wait for their values.
void CudaStaging::lay_out(const std::vector<Segment>& segments) {
  const bool has_old = !segments_.empty();
  segments_ = segments;
  places_ = places_of(segments, packing_, block_);
  group_of_.assign(segments.size(), 0);
  from_.assign(segments.size(), nullptr);
  std::vector<std::int32_t> order;
  used_ = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (used_ == 0 || places_[i + 1] - places_[groups_[used_ - 1].first] > kCopyBytes) {
      if (used_ == groups_.size()) groups_.emplace_back();
      groups_[used_++].first = i;
    }
    groups_[used_ - 1].last = i + 1;
    group_of_[i] = used_ - 1;
    segments[i].for_each_run(block_, [&](std::int64_t first, std::int64_t, std::int64_t n) {
      for (std::int64_t at = first; at < first + n; at += block_ - at % block_)
        if (at % block_ == 0) order.push_back(static_cast<std::int32_t>(at / block_));
    });
  }
  require(std::ssize(order) == (count_ + block_ - 1) / block_,
          "segments cover {} blocks, but there are {} values", order.size(), count_);
  if (has_old) check(cudaStreamSynchronize(out_), "waiting for the GPU");
  // Not cudaMemcpy, which may return before the GPU has the bytes. These streams would not wait.
  check(cudaMemcpyAsync(order_.get(), order.data(), order.size() * sizeof(std::int32_t),
                        cudaMemcpyHostToDevice, back_),
        "copying the order of blocks");
  check(cudaStreamSynchronize(back_), "copying the order of blocks");
}

void CudaStaging::copy_to_host(std::size_t groups) {
  for (; queued_ < std::min(groups, used_); ++queued_) {
    Group& group = groups_[queued_];
    const std::size_t first = places_[group.first], bytes = places_[group.last] - first;
    if (bytes > 0)
      check(cudaMemcpyAsync(host_.get() + first, packed_.get() + first, bytes,
                            cudaMemcpyDeviceToHost, out_),
            "copying segments to the host");
    group.arrived.record(out_);
  }
}

// Segments that are adjacent both on the host and on the GPU are copied together.
void CudaStaging::copy_back(const Group& group) {
  for (std::size_t begin = group.first, end = 0; begin < group.last; begin = end) {
    end = begin + 1;
    if (segments_[begin].count == 0) continue;
    std::size_t bytes = packed(begin).bytes;
    for (; end < group.last; ++end) {
      if (segments_[end].count == 0) continue;
      if (from_[end] != from_[begin] + (places_[end] - places_[begin])) break;
      bytes = places_[end] - places_[begin] + packed(end).bytes;
    }
    check(cudaMemcpyAsync(packed_.get() + places_[begin], from_[begin], bytes,
                          cudaMemcpyHostToDevice, back_),
          "copying segments to the GPU");
  }
}

// Packs all values and checks whether they are finite.
void CudaStaging::pack() {
  const Queue on = queue(out_);
  int* not_finite = not_finite_.get();
  *not_finite = 0;
  const float* values = values_.data<float>();
  switch (packing_) {
    case Packing::none:
      pack_none(on, values, reinterpret_cast<float*>(packed_.get()), blocks(), not_finite);
      break;
    case Packing::trunc16:
      pack_trunc16(on, values, reinterpret_cast<std::uint16_t*>(packed_.get()), blocks(),
                   not_finite);
      break;
    case Packing::quant8:
      pack_quant8(on, values, packed_.get(), blocks(), not_finite);
      break;
    case Packing::ternary:  // only on hosts
      break;
  }
  packed_all_.record(out_);
}

bool CudaStaging::finite() {
  context_.make_current();  // for all later calls: another thread may have called begin()
  packed_all_.wait();
  return not_finite_[0] == 0;
}

std::vector<float> CudaStaging::values() {
  std::vector<float> all(static_cast<std::size_t>(count_));
  check(cudaMemcpyAsync(all.data(), values_.raw(), values_.bytes(), cudaMemcpyDeviceToHost, out_),
        "copying values to the host");
  check(cudaStreamSynchronize(out_), "copying values to the host");
  return all;
}

void CudaStaging::wait(std::size_t segment) {
  const std::size_t group = group_of_[segment];
  if (group < arrived_) return;
  copy_to_host(group + 1 + kAhead);
  groups_[group].arrived.wait();
  arrived_ = group + 1;  // earlier groups have arrived, too
}

Pieces CudaStaging::packed(std::size_t segment) {
  return std::span(host_.get() + places_[segment],
                   packed_bytes(packing_, segments_[segment].count, block_));
}

void CudaStaging::put(std::size_t segment, const ConstPieces& bytes) {
  put_ = true;
  from_[segment] = bytes.whole().data();
  from_elsewhere_ |= bytes.data != host_.get() + places_[segment];
  Group& group = groups_[group_of_[segment]];
  if (--group.to_put == 0) copy_back(group);
}

void CudaStaging::settle() {
  if (!from_elsewhere_) return;
  settled_.record(back_);
  settled_.wait();
  from_elsewhere_ = false;
}

EventPtr CudaStaging::finish() {
  if (put_) unpack();
  const auto event = events_->take(Event::Timing::off);  // the last one may still be in use
  event->record(back_);
  last_ = event;
  values_ = Tensor();
  return event;
}

void CudaStaging::unpack() {
  const Queue on = queue(back_);
  float* values = values_.data<float>();
  switch (packing_) {
    case Packing::none:
      unpack_none(on, reinterpret_cast<const float*>(packed_.get()), values, blocks());
      break;
    case Packing::trunc16:
      unpack_trunc16(on, reinterpret_cast<const std::uint16_t*>(packed_.get()), values, blocks());
      break;
    case Packing::quant8:
      unpack_quant8(on, packed_.get(), values, blocks());
      break;
    case Packing::ternary:
      break;
  }
}

BlockOrder CudaStaging::blocks() const {
  return {.order = order_.get(), .count = count_, .block = block_};
}

// Without scratch memory: packing needs none, and the computation uses the context's.
Queue CudaStaging::queue(cudaStream_t stream) const {
  return {.stream = stream, .multiprocessors = context_.queue.multiprocessors};
}

}  // namespace tandem::cuda
