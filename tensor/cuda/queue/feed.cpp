#include "tensor/cuda/queue/feed.h"

namespace tandem::cuda {

CudaFeed::CudaFeed(Context& context, const ByteScale& scale) : context_(context) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  scale_ = copied(scale.scale);
  offset_ = copied(scale.offset);
}

void* CudaFeed::copied(const std::vector<float>& values) const {
  if (values.empty()) return nullptr;
  void* data = nullptr;
  const std::size_t bytes = values.size() * sizeof(float);
  check(cudaMalloc(&data, bytes), "allocating memory for a scale");
  check(cudaMemcpyAsync(data, values.data(), bytes, cudaMemcpyHostToDevice, stream_),
        "copying a scale");
  check(cudaStreamSynchronize(stream_), "copying a scale");
  return data;
}

CudaFeed::~CudaFeed() {
  cudaStreamSynchronize(stream_);
  cudaStreamSynchronize(context_.stream);
  for (Slot& slot : slots_)
    for (Part& part : slot.parts) cudaFree(part.data);
  cudaFree(scale_);
  cudaFree(offset_);
  cudaStreamDestroy(stream_);
}

void CudaFeed::bring(std::span<const Move> moves) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.arrived.wait();  // the copy of two batches ago; then its host memory is free
  slot.parts.resize(moves.size());
  slot.consumed.hold_back(stream_);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    Part& part = slot.parts[i];
    const Tensor& from = moves[i].from;
    part.host = from;
    if (part.bytes < from.bytes()) grow(slot, part, from.bytes());
    check(cudaMemcpyAsync(part.data, from.raw(), from.bytes(), cudaMemcpyHostToDevice, stream_),
          "copying a batch to the GPU");
  }
  slot.arrived.record(stream_);
  slot.arrived.hold_back(context_.stream);
  for (std::size_t i = 0; i < moves.size(); ++i) put_in_place(slot.parts[i], moves[i].to);
  slot.consumed.record(context_.stream);
}

void CudaFeed::grow(Slot& slot, Part& part, std::size_t bytes) {
  slot.consumed.wait();
  check(cudaFree(part.data), "freeing memory of a batch");
  part.data = nullptr;
  part.bytes = 0;
  check(cudaMalloc(&part.data, bytes), "allocating memory for a batch");
  part.bytes = bytes;
}

void CudaFeed::put_in_place(const Part& part, const Tensor& to) const {
  if (part.host.dtype() == to.dtype())
    check(
        cudaMemcpyAsync(to.raw(), part.data, to.bytes(), cudaMemcpyDeviceToDevice, context_.stream),
        "copying a batch");
  else if (part.host.dtype() == Dtype::f32)
    cast(context_.queue, type_of(part.host), part.data, type_of(to), to.raw(), to.count());
  else
    scale_bytes(context_.queue, static_cast<const std::uint8_t*>(part.data),
                static_cast<const float*>(scale_), static_cast<const float*>(offset_), to.size(-1),
                type_of(to), to.raw(), to.count());
}

}  // namespace tandem::cuda
