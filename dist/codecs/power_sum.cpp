#include "dist/codecs/power_sum.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

std::size_t elements(std::int64_t length, int rank) {
  return static_cast<std::size_t>(length * rank);
}

// The values on the host.
std::span<float> whole(Staging& staging) {
  const std::span<std::byte> bytes = staging.packed(0).whole();
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

LowRankStaging& on_device(Staging& values) {
  auto* const staging = dynamic_cast<LowRankStaging*>(&values);
  require(staging != nullptr, "a sum that a device encodes needs its staging");
  return *staging;
}

}  // namespace

PowerSum::PowerSum(PowerSgd& codec, const Group& group, const BlockRange& range)
    : AllReduce(group, range),
      codec_(codec),
      segments_{{.first = 0, .count = range.count, .step = kBlock}},
      rows_(codec.rows_in(range)) {
  std::int64_t at = 0;
  const auto add_plain = [&](std::int64_t end) {
    if (at == end) return;
    plain_.push_back({.first = at, .count = end - at, .step = kBlock});
    all_plain_ += static_cast<std::size_t>(end - at);
  };
  for (const Rows& r : rows_) {
    p_places_.push_back(all_p_);
    q_places_.push_back(all_q_);
    all_p_ += elements(r.rows, codec.rank());
    all_q_ += elements(r.columns, codec.rank());
    add_plain(r.first);
    at = r.first + r.rows * r.columns;
  }
  add_plain(range.count);
  if (all_p_ + all_plain_ > 0)
    sum_first_ = make_all_reduce(group, {.count = static_cast<std::int64_t>(all_p_ + all_plain_)});
  if (all_q_ > 0)
    sum_second_ = make_all_reduce(group, {.count = static_cast<std::int64_t>(all_q_)});
}

std::span<float> PowerSum::p_of(std::size_t i, std::span<float> first) const {
  return first.subspan(p_places_[i], elements(rows_[i].rows, codec_.rank()));
}

std::span<float> PowerSum::q_of(std::size_t i, std::span<float> second) const {
  return second.subspan(q_places_[i], elements(rows_[i].columns, codec_.rank()));
}

void PowerSum::run(Staging& values) {
  const std::span<float> first = multiply(values);
  if (sum_first_) sum_first_->sum(first);
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      orthogonalise(rows_[i].rows, codec_.rank(), p_of(i, first).data());
  }
  const std::span<float> second = multiply_transposed(values);
  if (sum_second_) sum_second_->sum(second);
  put(values);
  keep_q(second);
}

// A column of zeros would stay zero for ever, so the one before it is used again.
void PowerSum::keep_q(std::span<const float> second) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Rows& r = rows_[i];
    const std::span<float> kept = codec_.q_of(r, range_);
    for (int k = 0; k < codec_.rank(); ++k) {
      const auto column = second.subspan(q_places_[i] + static_cast<std::size_t>(k * r.columns),
                                         static_cast<std::size_t>(r.columns));
      if (std::ranges::any_of(column, [](float x) { return x != 0; }))
        std::ranges::copy(column, kept.begin() + k * r.columns);
    }
  }
}

// ---- on the host

HostPowerSum::HostPowerSum(PowerSgd& codec, const Group& group, const BlockRange& range)
    : PowerSum(codec, group, range), first_(all_p_ + all_plain_), second_(all_q_) {}

std::span<float> HostPowerSum::multiply(Staging& staging) {
  staging.wait(0);
  const Spans::Scope span(group_.spans, SpanKind::compress);
  const std::span<float> values = whole(staging);
  const Tensor residual = codec_.residual(range_);
  float* const rest = residual.defined() ? residual.data<float>() : nullptr;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Rows& r = rows_[i];
    add_and_multiply(r.size(), codec_.rank(), rest == nullptr ? nullptr : rest + r.first,
                     values.data() + r.first, codec_.q_of(r, range_).data(),
                     p_of(i, first_).data());
  }
  auto to = first_.begin() + static_cast<std::ptrdiff_t>(all_p_);
  // A part that is plain now may have been encoded before, when messages were cut differently.
  for (const Segment& plain : plain_) {
    if (rest != nullptr)
      for (std::int64_t i = plain.first; i < plain.first + plain.count; ++i)
        values[static_cast<std::size_t>(i)] += std::exchange(rest[i], 0.0F);
    to = std::copy_n(values.begin() + plain.first, plain.count, to);
  }
  return first_;
}

std::span<float> HostPowerSum::multiply_transposed(Staging& staging) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  const std::span<float> values = whole(staging);
  const Tensor residual = codec_.residual(range_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Rows& r = rows_[i];
    const float* const m = values.data() + r.first;
    const float* const p = p_of(i, first_).data();
    float* const q = q_of(i, second_).data();
    tandem::multiply_transposed(r.size(), codec_.rank(), m, p, q);
    if (residual.defined())
      subtract_product(r.size(), codec_.rank(), m, p, q, residual.data<float>() + r.first);
  }
  return second_;
}

void HostPowerSum::put(Staging& staging) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  const std::span<float> values = whole(staging);
  for (std::size_t i = 0; i < rows_.size(); ++i)
    multiply_thin(rows_[i].size(), codec_.rank(), p_of(i, first_).data(), q_of(i, second_).data(),
                  values.data() + rows_[i].first);
  auto from = first_.begin() + static_cast<std::ptrdiff_t>(all_p_);
  for (const Segment& plain : plain_) {
    std::copy_n(from, plain.count, values.begin() + plain.first);
    from += plain.count;
  }
  staging.put(0, staging.packed(0));
}

// ---- on a device

std::unique_ptr<Staging> DevicePowerSum::make_staging() const {
  LowRankStaging::Layout layout{.count = range_.count,
                                .rank = codec_.rank(),
                                .plain = plain_,
                                .all_p = static_cast<std::int64_t>(all_p_),
                                .all_q = static_cast<std::int64_t>(all_q_),
                                .all_plain = static_cast<std::int64_t>(all_plain_)};
  for (std::size_t i = 0; i < rows_.size(); ++i)
    layout.matrices.push_back({.first = rows_[i].first,
                               .rows = rows_[i].rows,
                               .columns = rows_[i].columns,
                               .p_at = static_cast<std::int64_t>(p_places_[i]),
                               .q_at = static_cast<std::int64_t>(q_places_[i])});
  return codec_.context().device.backend().make_low_rank_staging(layout);
}

std::span<float> DevicePowerSum::multiply(Staging& values) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  q_.clear();
  for (const Rows& r : rows_) {
    const std::span<float> q = codec_.q_of(r, range_);
    q_.insert(q_.end(), q.begin(), q.end());
  }
  return on_device(values).multiply(codec_.residual(range_), q_);
}

std::span<float> DevicePowerSum::multiply_transposed(Staging& values) {
  const Spans::Scope span(group_.spans, SpanKind::compress);
  return on_device(values).multiply_transposed(codec_.residual(range_));
}

// The device does this in finish().
void DevicePowerSum::put(Staging&) {}

}  // namespace tandem
