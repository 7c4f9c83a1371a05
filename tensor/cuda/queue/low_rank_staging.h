// PowerSGD's products on a GPU. All work of a sum is on one stream, in order.
#pragma once

#include "tensor/cuda/kernels/low_rank.h"
#include "tensor/cuda/queue/memory.h"
#include "tensor/cuda/queue/staging.h"
#include "tensor/low_rank_staging.h"

namespace tandem::cuda {

class CudaLowRankStaging : public LowRankStaging {
 public:
  CudaLowRankStaging(const Context& context, const CopyStreams& streams, Layout layout);
  ~CudaLowRankStaging() override;

  void begin(const Tensor& values, const EventPtr& ready, const std::vector<Segment>& segments,
             Fill fill) override;
  bool finite() override;
  std::vector<float> values() override;
  std::span<float> multiply(const Tensor& residual, std::span<const float> q) override;
  std::span<float> multiply_transposed(const Tensor& residual) override;
  void settle() override;
  EventPtr finish() override;

 private:
  Queue queue() const {
    return {.stream = stream_, .multiprocessors = context_.queue.multiprocessors};
  }
  void to_device(std::span<const float> host, const DeviceMemory<float>& to);
  void to_host(const DeviceMemory<float>& from, std::span<float> host);
  void wait_for_stream() {
    done_.record(stream_);
    done_.wait();
  }
  std::span<float> p_on_host() { return {first_.get(), static_cast<std::size_t>(layout_.all_p)}; }
  std::span<float> q_on_host() { return {second_.get(), static_cast<std::size_t>(layout_.all_q)}; }

  const Context& context_;
  Layout layout_;
  cudaStream_t stream_;
  DeviceMemory<LowRankMatrix> matrix_list_;
  DeviceMemory<LowRankTile> tiles_;
  LowRankMatrices matrices_;
  DeviceMemory<PlainStretch> plain_;
  DeviceMemory<float> p_, q_, partial_;
  PinnedMemory<float> first_;   // all P, then the plain values
  PinnedMemory<float> second_;  // all Q
  PinnedMemory<int> not_finite_;

  Tensor values_;
  EventPtr ready_;
  CudaEvent done_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  EventPtr last_;  // after the last finish(); null before
};

}  // namespace tandem::cuda
