#include "tensor/cuda/staging.h"

#include <algorithm>

namespace tandem::cuda {
namespace {

constexpr std::int64_t kCopyBytes = 4 << 20;  // 80 µs on the way to the host
constexpr std::size_t kAhead = 4;             // copies

}  // namespace

// Small kernels between long ones of the computation: they go first.
CudaStaging::Stream CudaStaging::make_stream() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "making a stream");
  return Stream(stream);
}

template <class T>
std::unique_ptr<T[], CudaStaging::FreeHost> CudaStaging::pinned(std::size_t count) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, std::max<std::size_t>(1, count) * sizeof(T), cudaHostAllocDefault),
        "taking pinned memory");
  return std::unique_ptr<T[], FreeHost>(static_cast<T*>(memory));
}

template <class T>
std::unique_ptr<T[], CudaStaging::FreeDevice> CudaStaging::on_device(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(1, count) * sizeof(T)), "taking memory");
  return std::unique_ptr<T[], FreeDevice>(static_cast<T*>(memory));
}

CudaStaging::CudaStaging(const Context& context, Packing packing, std::int64_t count,
                         std::int64_t block)
    : context_(context),
      packing_(packing),
      count_(count),
      block_(block),
      out_(make_stream()),
      back_(make_stream()),
      host_(pinned<std::byte>(packed_bytes(packing, count, block))),
      not_finite_(on_device<int>(1)),
      host_not_finite_(pinned<int>(1)) {
  if (packing != Packing::none) packed_ = on_device<std::byte>(packed_bytes(packing, count, block));
}

CudaStaging::~CudaStaging() {
  cudaSetDevice(context_.device);
  cudaStreamSynchronize(out_.get());
  cudaStreamSynchronize(back_.get());
}

void CudaStaging::begin(const Tensor& values, const EventPtr& ready, const Segments& segments) {
  require(values.dtype() == Dtype::f32 && values.count() == count_,
          "{} values of {} cannot go through memory for {} of f32", values.count(),
          name_of(values.dtype()), count_);
  context_.make_current();
  if (last_) last_->wait();
  values_ = values;
  length_ = segments.length;
  put_ = false;
  const auto bytes = static_cast<std::int64_t>(packed_bytes(packing_, length_, block_));
  together_ = std::max<std::int64_t>(1, kCopyBytes / std::max<std::int64_t>(1, bytes));
  const std::int64_t all = length_ > 0 ? (count_ + length_ - 1) / length_ : 0;
  while (std::ssize(groups_) * together_ < all) groups_.emplace_back();
  for (std::int64_t first = 0; first < all; first += together_) {
    Group& group = groups_[group_of(first)];
    group.to_put = std::min(together_, all - first);
    group.place = 0;
  }
  order_.clear();
  queued_ = 0;
  CudaEvent::let_wait(out_.get(), ready);
  CudaEvent::let_wait(back_.get(), ready);
  if (segments.order.empty()) return;

  pack();
  for (const std::int64_t segment : segments.order) {
    Group& group = groups_[group_of(segment)];
    if (group.place > 0) continue;
    order_.push_back(group_of(segment));
    group.place = order_.size();
  }
  copy_to_host(kAhead);
}

void CudaStaging::copy_to_host(std::size_t groups) {
  for (; queued_ < std::min(groups, order_.size()); ++queued_) {
    const std::span<std::byte> to = packed_group(order_[queued_]);
    check(cudaMemcpyAsync(to.data(), on_gpu() + (to.data() - host_.get()), to.size(),
                          cudaMemcpyDeviceToHost, out_.get()),
          "copying segments to the host");
    groups_[order_[queued_]].arrived.record(out_.get());
  }
}

// Packs all values, and finds out whether they are finite.
void CudaStaging::pack() {
  const Queue on = queue(out_);
  int* not_finite = not_finite_.get();
  check(cudaMemsetAsync(not_finite, 0, sizeof(int), out_.get()), "clearing a flag");
  const float* values = values_.data<float>();
  switch (packing_) {
    case Packing::none:
      find_not_finite(on, values, count_, not_finite);
      break;
    case Packing::trunc16:
      pack_trunc16(on, values, reinterpret_cast<std::uint16_t*>(packed_.get()), count_, not_finite);
      break;
    case Packing::quant8:
      pack_quant8(on, values, packed_.get(), count_, block_, not_finite);
      break;
  }
  check(cudaMemcpyAsync(host_not_finite_.get(), not_finite, sizeof(int), cudaMemcpyDeviceToHost,
                        out_.get()),
        "copying a flag to the host");
  checked_.record(out_.get());
}

bool CudaStaging::finite() {
  checked_.wait();
  return host_not_finite_[0] == 0;
}

std::vector<float> CudaStaging::values() {
  std::vector<float> all(static_cast<std::size_t>(count_));
  check(cudaMemcpyAsync(all.data(), values_.raw(), values_.bytes(), cudaMemcpyDeviceToHost,
                        out_.get()),
        "copying values to the host");
  check(cudaStreamSynchronize(out_.get()), "copying values to the host");
  return all;
}

void CudaStaging::wait(std::int64_t segment) {
  const Group& group = groups_[group_of(segment)];
  copy_to_host(group.place + kAhead);
  group.arrived.wait();
}

std::span<std::byte> CudaStaging::packed(std::int64_t segment) {
  const std::int64_t first = segment * length_;
  return {host_.get() + packed_bytes(packing_, first, block_),
          packed_bytes(packing_, std::min(length_, count_ - first), block_)};
}

std::span<std::byte> CudaStaging::packed_group(std::size_t group) {
  const std::int64_t length = together_ * length_;
  const std::int64_t first = static_cast<std::int64_t>(group) * length;
  return {host_.get() + packed_bytes(packing_, first, block_),
          packed_bytes(packing_, std::min(length, count_ - first), block_)};
}

void CudaStaging::put(std::int64_t segment) {
  put_ = true;
  if (--groups_[group_of(segment)].to_put > 0) return;
  const std::span<const std::byte> from = packed_group(group_of(segment));
  check(cudaMemcpyAsync(on_gpu() + (from.data() - host_.get()), from.data(), from.size(),
                        cudaMemcpyHostToDevice, back_.get()),
        "copying segments to the GPU");
}

EventPtr CudaStaging::finish() {
  if (put_) unpack();
  const auto event =
      std::make_shared<CudaEvent>();  // a new one: the last may not be waited for yet
  event->record(back_.get());
  last_ = event;
  values_ = Tensor();
  return event;
}

void CudaStaging::unpack() {
  const Queue on = queue(back_);
  float* values = values_.data<float>();
  switch (packing_) {
    case Packing::none:  // copied to their place
      break;
    case Packing::trunc16:
      unpack_trunc16(on, reinterpret_cast<const std::uint16_t*>(packed_.get()), values, count_);
      break;
    case Packing::quant8:
      unpack_quant8(on, packed_.get(), values, count_, block_);
      break;
  }
}

std::byte* CudaStaging::on_gpu() const { return packed_ ? packed_.get() : values_.raw(); }

// Without scratch memory, which packing does not need: the one of the context is the computation's.
Queue CudaStaging::queue(const Stream& stream) const {
  return {.stream = stream.get(), .multiprocessors = context_.queue.multiprocessors};
}

}  // namespace tandem::cuda
