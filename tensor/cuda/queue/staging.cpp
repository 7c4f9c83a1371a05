#include "tensor/cuda/queue/staging.h"

#include <algorithm>

namespace tandem::cuda {
namespace {

constexpr std::int64_t kCopyBytes = 4 << 20;  // 80 µs on the way to the host
constexpr std::size_t kAhead = 4;             // copies
// Shorter segments are copied by the host sooner than it learns that the GPU has read them.
constexpr std::size_t kBorrowBytes = 64 << 10;

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
  check(cudaHostAlloc(&memory, std::max<std::size_t>(1, count) * sizeof(T), cudaHostAllocPortable),
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
      not_finite_(pinned<int>(1)) {
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
  values_ = values;
  put_ = borrowed_ = false;
  make_groups(segments);
  CudaEvent::let_wait(out_.get(), ready);
  CudaEvent::let_wait(back_.get(), ready);
  if (segments.order.empty()) {
    if (last_) last_->wait();  // the host may write at once
    return;
  }
  CudaEvent::let_wait(out_.get(), last_);
  pack();
  copy_to_host(kAhead);
}

// Segments that follow each other in the order become a group where their distance is the same.
void CudaStaging::make_groups(const Segments& segments) {
  length_ = segments.length;
  const std::int64_t all = length_ > 0 ? (count_ + length_ - 1) / length_ : 0;
  const auto bytes = static_cast<std::int64_t>(packed_bytes(packing_, length_, block_));
  const std::int64_t most =
      std::max<std::int64_t>(1, kCopyBytes / std::max<std::int64_t>(1, bytes));
  const auto whole = [&](std::int64_t segment) { return (segment + 1) * length_ <= count_; };
  used_ = queued_ = arrived_ = 0;
  group_of_.resize(static_cast<std::size_t>(all));
  from_.resize(static_cast<std::size_t>(all));
  const auto add = [&](std::int64_t segment) {
    Group* last = used_ > 0 ? &groups_[used_ - 1] : nullptr;
    const std::int64_t distance = last ? segment - last->at(last->segments - 1) : 0;
    if (last && last->segments < most && whole(last->first) && whole(segment) && distance > 0 &&
        (last->segments == 1 || distance == last->distance)) {
      last->distance = distance;
      ++last->segments;
    } else {
      if (used_ == groups_.size()) groups_.emplace_back();
      last = &groups_[used_++];
      last->first = segment;
      last->distance = last->segments = 1;
    }
    last->to_put = last->segments;
    group_of_[static_cast<std::size_t>(segment)] = used_ - 1;
  };
  if (segments.order.empty())
    for (std::int64_t segment = 0; segment < all; ++segment) add(segment);
  else
    for (const std::int64_t segment : segments.order) add(segment);
}

// Where a segment's packed bytes are, or its values where nothing is packed.
std::byte* CudaStaging::on_gpu(std::int64_t segment) {
  return (packed_ ? packed_.get() : values_.raw()) + (packed(segment).data() - host_.get());
}

void CudaStaging::copy_to_host(std::size_t groups) {
  for (; queued_ < std::min(groups, used_); ++queued_) {
    Group& group = groups_[queued_];
    const std::span<std::byte> to = packed(group.first);
    const std::size_t pitch = static_cast<std::size_t>(group.distance) * to.size();
    check(cudaMemcpy2DAsync(to.data(), pitch, on_gpu(group.first), pitch, to.size(),
                            static_cast<std::size_t>(group.segments), cudaMemcpyDeviceToHost,
                            out_.get()),
          "copying segments to the host");
    group.arrived.record(out_.get());
  }
}

// Segments that lie on the host at the same distance as on the GPU go in one copy.
void CudaStaging::copy_back(const Group& group) {
  const std::size_t bytes = packed(group.first).size();
  const std::size_t pitch = static_cast<std::size_t>(group.distance) * bytes;
  for (std::int64_t begin = 0, end = 0; begin < group.segments; begin = end) {
    const std::byte* const from = from_[static_cast<std::size_t>(group.at(begin))];
    const auto rows = [&] { return static_cast<std::size_t>(end - begin); };
    do ++end;
    while (end < group.segments &&
           from_[static_cast<std::size_t>(group.at(end))] == from + rows() * pitch);
    check(cudaMemcpy2DAsync(on_gpu(group.at(begin)), pitch, from, pitch, bytes, rows(),
                            cudaMemcpyHostToDevice, back_.get()),
          "copying segments to the GPU");
  }
}

// Packs all values, and finds out whether they are finite.
void CudaStaging::pack() {
  const Queue on = queue(out_);
  int* not_finite = not_finite_.get();
  *not_finite = 0;
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
  packed_all_.record(out_.get());
}

bool CudaStaging::finite() {
  context_.make_current();  // for all that follows: begin() may have been called by another thread
  packed_all_.wait();
  return not_finite_[0] == 0;
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
  const std::size_t group = group_of_[static_cast<std::size_t>(segment)];
  if (group < arrived_) return;
  copy_to_host(group + 1 + kAhead);
  groups_[group].arrived.wait();
  arrived_ = group + 1;  // and all before it
}

std::span<std::byte> CudaStaging::packed(std::int64_t segment) {
  const std::int64_t first = segment * length_;
  return {host_.get() + packed_bytes(packing_, first, block_),
          packed_bytes(packing_, std::min(length_, count_ - first), block_)};
}

void CudaStaging::put(std::int64_t segment) { put_borrowed(segment, packed(segment)); }

bool CudaStaging::borrows() const {
  return packed_bytes(packing_, length_, block_) >= kBorrowBytes;
}

void CudaStaging::put_borrowed(std::int64_t segment, std::span<const std::byte> bytes) {
  put_ = true;
  borrowed_ |= bytes.data() != packed(segment).data();
  from_[static_cast<std::size_t>(segment)] = bytes.data();
  Group& group = groups_[group_of_[static_cast<std::size_t>(segment)]];
  if (--group.to_put == 0) copy_back(group);
}

void CudaStaging::settle() {
  if (!borrowed_) return;
  settled_.record(back_.get());
  settled_.wait();
  borrowed_ = false;
}

EventPtr CudaStaging::finish() {
  if (put_) unpack();
  const auto event = events_->take(Event::Timing::off);  // the last may not be waited for yet
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

// Without scratch memory, which packing does not need: the one of the context is the computation's.
Queue CudaStaging::queue(const Stream& stream) const {
  return {.stream = stream.get(), .multiprocessors = context_.queue.multiprocessors};
}

}  // namespace tandem::cuda
