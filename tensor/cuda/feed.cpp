#include "tensor/cuda/feed.h"

namespace tandem::cuda {

CudaFeed::CudaFeed(Context& context, const ByteScale& scale) : context_(context) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  scale_ = copied(scale.scale);
  offset_ = copied(scale.offset);
}

void* CudaFeed::copied(const std::vector<float>& values) {
  if (values.empty()) return nullptr;
  void* data = nullptr;
  const std::size_t bytes = values.size() * sizeof(float);
  check(cudaMalloc(&data, bytes), "taking memory for a scale");
  check(cudaMemcpy(data, values.data(), bytes, cudaMemcpyHostToDevice), "copying a scale");
  return data;
}

CudaFeed::~CudaFeed() {
  cudaStreamSynchronize(stream_);
  for (Slot& slot : slots_) cudaFree(slot.data);
  cudaFree(scale_);
  cudaFree(offset_);
  cudaStreamDestroy(stream_);
}

void CudaFeed::bring(const Tensor& from, const Tensor& to) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.arrived.wait();  // of two batches ago: its memory on the host is free
  slot.host = from;
  if (slot.bytes < from.bytes()) {
    slot.consumed.wait();
    check(cudaFree(slot.data), "giving back memory for a batch");
    slot.data = nullptr;
    slot.bytes = 0;
    check(cudaMalloc(&slot.data, from.bytes()), "taking memory for a batch");
    slot.bytes = from.bytes();
  }
  slot.consumed.hold_back(stream_);
  check(cudaMemcpyAsync(slot.data, from.raw(), from.bytes(), cudaMemcpyHostToDevice, stream_),
        "copying a batch to the GPU");
  slot.arrived.record(stream_);
  slot.arrived.hold_back(context_.stream);
  if (from.dtype() == to.dtype())
    check(
        cudaMemcpyAsync(to.raw(), slot.data, to.bytes(), cudaMemcpyDeviceToDevice, context_.stream),
        "copying a batch");
  else
    scale_bytes(context_.queue, static_cast<const std::uint8_t*>(slot.data),
                static_cast<const float*>(scale_), static_cast<const float*>(offset_), to.size(-1),
                type_of(to), to.raw(), to.count());
  slot.consumed.record(context_.stream);
}

}  // namespace tandem::cuda
