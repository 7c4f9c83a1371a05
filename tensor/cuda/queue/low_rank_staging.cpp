#include "tensor/cuda/queue/low_rank_staging.h"

#include "tensor/cuda/kernels/encode.h"

namespace tandem::cuda {

CudaLowRankStaging::CudaLowRankStaging(const Context& context, const CopyStreams& streams,
                                       Layout layout)
    : context_(context), layout_(std::move(layout)), stream_(streams.back) {
  context_.make_current();
  std::vector<LowRankMatrix> matrices;
  std::vector<LowRankTile> tiles;
  std::int64_t rows = 0, partial = 0, at = 0;
  for (const Matrix& m : layout_.matrices) {
    const auto chunks = static_cast<int>((m.rows + kLowRankRows - 1) / kLowRankRows);
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (std::int64_t column = 0; column < m.columns; column += kLowRankColumns)
        tiles.push_back(
            {.matrix = static_cast<int>(matrices.size()), .chunk = chunk, .column = column});
    matrices.push_back({.first = m.first,
                        .rows = m.rows,
                        .columns = m.columns,
                        .p_at = m.p_at,
                        .q_at = m.q_at,
                        .rows_before = rows,
                        .partial_at = partial});
    rows += m.rows;
    partial += chunks * layout_.rank * m.columns;
  }
  std::vector<PlainStretch> plain;
  for (const Segment& s : layout_.plain) {
    plain.push_back({.first = s.first, .count = s.count, .at = at});
    at += s.count;
  }
  matrix_list_ = on_device<LowRankMatrix>(matrices, stream_);
  tiles_ = on_device<LowRankTile>(tiles, stream_);
  partial_ = on_device<float>(static_cast<std::size_t>(partial));
  matrices_ = {.all = matrix_list_.get(),
               .count = static_cast<int>(matrices.size()),
               .rows = rows,
               .all_q = layout_.all_q,
               .rank = layout_.rank,
               .tiles = tiles_.get(),
               .tile_count = static_cast<int>(tiles.size())};
  plain_ = on_device<PlainStretch>(plain, stream_);
  p_ = on_device<float>(static_cast<std::size_t>(layout_.all_p));
  q_ = on_device<float>(static_cast<std::size_t>(layout_.all_q));
  first_ = pinned<float>(static_cast<std::size_t>(layout_.all_p + layout_.all_plain));
  second_ = pinned<float>(static_cast<std::size_t>(layout_.all_q));
  not_finite_ = pinned<int>(1);
}

CudaLowRankStaging::~CudaLowRankStaging() {
  cudaSetDevice(context_.device);
  cudaStreamSynchronize(stream_);
}

void CudaLowRankStaging::begin(const Tensor& values, const EventPtr& ready,
                               const std::vector<Segment>&, Fill fill) {
  require(
      values.dtype() == Dtype::f32 && values.count() == layout_.count && fill == Fill::from_values,
      "got {} values of type {}; this staging is for {} of type f32", values.count(),
      name_of(values.dtype()), layout_.count);
  values_ = values;
  ready_ = ready;
}

bool CudaLowRankStaging::finite() {
  context_.make_current();
  if (last_) last_->wait();  // until the host's matrices have been read
  CudaEvent::let_wait(stream_, ready_);
  not_finite_[0] = 0;
  find_not_finite(queue(), values_.data<float>(), layout_.count, not_finite_.get());
  wait_for_stream();
  return not_finite_[0] == 0;
}

std::vector<float> CudaLowRankStaging::values() {
  std::vector<float> all(static_cast<std::size_t>(layout_.count));
  check(
      cudaMemcpyAsync(all.data(), values_.raw(), values_.bytes(), cudaMemcpyDeviceToHost, stream_),
      "copying values to the host");
  wait_for_stream();
  return all;
}

void CudaLowRankStaging::to_device(std::span<const float> host, const DeviceMemory<float>& to) {
  check(cudaMemcpyAsync(to.get(), host.data(), host.size_bytes(), cudaMemcpyHostToDevice, stream_),
        "copying matrices to the GPU");
}

void CudaLowRankStaging::to_host(const DeviceMemory<float>& from, std::span<float> host) {
  check(
      cudaMemcpyAsync(host.data(), from.get(), host.size_bytes(), cudaMemcpyDeviceToHost, stream_),
      "copying matrices to the host");
}

std::span<float> CudaLowRankStaging::multiply(const Tensor& residual, std::span<const float> q) {
  require(std::ssize(q) == layout_.all_q, "{} elements of Q instead of {}", q.size(),
          layout_.all_q);
  std::ranges::copy(q, second_.get());
  to_device(q_on_host(), q_);
  float* const rest = residual.defined() ? residual.data<float>() : nullptr;
  multiply_by_q(queue(), matrices_, rest, values_.data<float>(), q_.get(), p_.get());
  to_host(p_, p_on_host());
  take_plain(queue(), plain_.get(), static_cast<int>(layout_.plain.size()), values_.data<float>(),
             rest, first_.get() + layout_.all_p);
  wait_for_stream();
  return {first_.get(), static_cast<std::size_t>(layout_.all_p + layout_.all_plain)};
}

std::span<float> CudaLowRankStaging::multiply_transposed(const Tensor& residual) {
  to_device(p_on_host(), p_);
  multiply_by_p(queue(), matrices_, values_.data<float>(), p_.get(), partial_.get(), q_.get());
  to_host(q_, q_on_host());
  if (residual.defined())
    multiply_p_q(queue(), matrices_, p_.get(), q_.get(), values_.data<float>(),
                 residual.data<float>());
  wait_for_stream();
  return q_on_host();
}

void CudaLowRankStaging::settle() { wait_for_stream(); }

EventPtr CudaLowRankStaging::finish() {
  to_device(q_on_host(), q_);
  multiply_p_q(queue(), matrices_, p_.get(), q_.get(), nullptr, values_.data<float>());
  put_plain(queue(), plain_.get(), static_cast<int>(layout_.plain.size()),
            first_.get() + layout_.all_p, values_.data<float>());
  const auto event = events_->take(Event::Timing::off);
  event->record(stream_);
  last_ = event;
  values_ = Tensor();
  return event;
}

}  // namespace tandem::cuda
