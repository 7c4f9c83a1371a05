#include "dist/codecs/powersgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "dist/codecs/codec_table.h"
#include "dist/codecs/power_sum.h"
#include "tensor/backend.h"

namespace tandem {

PowerSgd::PowerSgd(int rank, const CodecContext& context) : Codec(context), rank_(rank) {
  if (rows_in({.count = count()}).empty())
    throw UserError(
        "--compress powersgd:{} gains nothing: no weight matrix of this net is large "
        "enough for rank {}",
        rank, rank);
  if (context.error_feedback) residual_ = Tensor::zeros({count()}, Dtype::f32, context.device);
}

// It begins with random numbers, the same on all workers.
std::span<float> PowerSgd::q_of(const Rows& rows, const BlockRange& range) {
  const std::int64_t first = range.first() + rows.first;
  Tensor& q = q_[first];
  if (!q.defined()) {
    std::vector<float> numbers(static_cast<std::size_t>(rows.columns * rank_));
    Random random = Random(context_.seed, Purpose::rounding).split(rows.parameter);
    for (float& number : numbers) number = static_cast<float>(random.normal());
    q = Tensor::from(numbers, {std::ssize(numbers)}, cpu_device(1));
  }
  return q.span<float>();
}

std::vector<Rows> PowerSgd::rows_in(const BlockRange& range) const {
  std::vector<Rows> found;
  const auto& trained = context_.parameters.trained();
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Parameter& p = *trained[i];
    if (p.shape.rank() < 2) continue;
    const std::int64_t columns = columns_of(p), begin = p.offset - range.first();
    const std::int64_t first = parts(std::max<std::int64_t>(0, -begin), columns);
    const std::int64_t end = std::min(p.shape[0], (range.count - begin) / columns);
    if (range.count <= begin || end <= first || !gains(end - first, columns)) continue;
    found.push_back({.parameter = i,
                     .first = begin + first * columns,
                     .rows = end - first,
                     .columns = columns});
  }
  return found;
}

std::int64_t PowerSgd::plain_elements() const {
  std::int64_t plain = count();
  for (const Rows& r : rows_in({.count = count()})) plain -= r.rows * r.columns;
  return plain;
}

std::unique_ptr<AllReduce> PowerSgd::make_sum(const AllReduce::Group& group,
                                              const BlockRange& range) {
  if (on_device()) return std::make_unique<DevicePowerSum>(*this, group, range);
  return std::make_unique<HostPowerSum>(*this, group, range);
}

bool PowerSgd::on_device() const { return !context_.device.backend().is_cpu(); }

void PowerSgd::visit(State& state) {
  std::vector<double> firsts, counts;
  for (const auto& [first, q] : q_) {
    firsts.push_back(static_cast<double>(first));
    counts.push_back(static_cast<double>(q.count()));
  }
  state("first elements of PowerSGD's matrices", firsts);
  state("sizes of PowerSGD's matrices", counts);
  require(firsts.size() == counts.size(), "{} matrices with {} sizes", firsts.size(),
          counts.size());
  std::map<std::int64_t, Tensor> all;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    const auto first = static_cast<std::int64_t>(firsts[i]);
    const auto count = static_cast<std::int64_t>(counts[i]);
    const auto known = q_.find(first);
    Tensor q = known != q_.end() && known->second.count() == count
                   ? known->second
                   : Tensor::zeros({count}, Dtype::f32, cpu_device(1));
    state(fmt::format("PowerSGD's matrix at {}", first), q);
    all[first] = q;
  }
  q_ = std::move(all);
  if (residual_.defined()) state("residual", residual_);
}

std::unique_ptr<Codec> make_powersgd(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<PowerSgd>(static_cast<int>(choice.value), context);
}

}  // namespace tandem
