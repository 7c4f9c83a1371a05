// PowerSGD (Vogels et al., 2019). A weight matrix's gradient M = gradient + residual, of n rows and
// m columns, is sent as two thin matrices. Q is what the last iteration has left (warm start):
//
//   P ← Σ M·Q over all workers;  P ← orthogonalised;  Q ← Σ Mᵀ·P over all workers;  sum = P·Qᵀ
//   residual ← M - P·(own Mᵀ·P)ᵀ
//
// Both sums are all-reduces of plain values, so any number of workers sends 2·(n+m)·RANK values per
// matrix. Biases, matrices that would not become smaller, and rows that a message has only in part
// are sent plain, with P.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "dist/codecs/codec_table.h"
#include "dist/codecs/thin_matrix.h"

namespace tandem {
namespace {

// Rows of a weight matrix that one message has as a whole.
struct Rows {
  std::size_t parameter;  // which
  std::int64_t first;     // element, in the range
  std::int64_t rows, columns;

  MatrixSize size() const { return {.rows = rows, .columns = columns}; }
};

class PowerSgd : public Codec {
 public:
  PowerSgd(int rank, const CodecContext& context);

  std::unique_ptr<AllReduce> make_sum(const AllReduce::Group& group,
                                      const BlockRange& range) override;
  std::int64_t plain_elements() const override;
  void visit(State& state) override;

  int rank() const { return rank_; }
  // The parts of matrices in the range that are encoded. The rest is plain.
  std::vector<Rows> rows_in(const BlockRange& range) const;
  // The columns of Q, each as long as the matrix has columns. Parts of a matrix have their own.
  std::span<float> q_of(const Rows& rows, const BlockRange& range);
  std::span<float> residual(const BlockRange& range) {
    if (!residual_.defined()) return {};
    return residual_.span<float>().subspan(static_cast<std::size_t>(range.first()),
                                           static_cast<std::size_t>(range.count));
  }

 private:
  static std::int64_t columns_of(const Parameter& p) { return p.shape.count() / p.shape[0]; }
  bool gains(std::int64_t rows, std::int64_t columns) const {
    return (rows + columns) * rank_ < rows * columns;
  }

  int rank_;
  std::map<std::int64_t, Tensor> q_;  // by the first element, in the flat gradient
  Tensor residual_;
};

class PowerSum : public AllReduce {
 public:
  PowerSum(PowerSgd& codec, const Group& group, const BlockRange& range);

  const std::vector<Segment>& segments() const override { return segments_; }

 private:
  void run(Staging& values) override;
  void give_up(Staging& values) override {
    (void)values;  // the sums below give up by themselves
  }

  // Calls f(first, count) for each stretch of the range that is plain.
  template <class F>
  void for_each_plain(F&& f) const;
  std::span<float> p_of(std::size_t i) {
    return std::span(first_).subspan(p_places_[i],
                                     static_cast<std::size_t>(rows_[i].rows * codec_.rank()));
  }
  std::span<float> new_q_of(std::size_t i) {
    return std::span(second_).subspan(q_places_[i],
                                      static_cast<std::size_t>(rows_[i].columns * codec_.rank()));
  }

  PowerSgd& codec_;
  std::vector<Segment> segments_;
  std::vector<Rows> rows_;
  std::vector<std::size_t> p_places_, q_places_;
  std::vector<float> first_;   // all P, then the plain values
  std::vector<float> second_;  // all Q
  std::unique_ptr<AllReduce> sum_first_, sum_second_;
};

// ---- the codec

PowerSgd::PowerSgd(int rank, const CodecContext& context) : Codec(context), rank_(rank) {
  if (rows_in({.count = count()}).empty())
    throw UserError(
        "--compress powersgd:{} gains nothing: no weight matrix of this net is large "
        "enough for rank {}",
        rank, rank);
  if (context.error_feedback) residual_ = Tensor::zeros({count()}, Dtype::f32, cpu_device(1));
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
  return std::make_unique<PowerSum>(*this, group, range);
}

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

PowerSum::PowerSum(PowerSgd& codec, const Group& group, const BlockRange& range)
    : AllReduce(group, range),
      codec_(codec),
      segments_{{.first = 0, .count = range.count, .step = kBlock}},
      rows_(codec.rows_in(range)) {
  std::size_t first = 0, second = 0;
  for (const Rows& r : rows_) {
    p_places_.push_back(first);
    q_places_.push_back(second);
    first += static_cast<std::size_t>(r.rows * codec.rank());
    second += static_cast<std::size_t>(r.columns * codec.rank());
  }
  for_each_plain(
      [&](std::int64_t, std::int64_t count) { first += static_cast<std::size_t>(count); });
  first_.resize(first);
  second_.resize(second);
  if (first > 0) sum_first_ = make_all_reduce(group, {.count = static_cast<std::int64_t>(first)});
  if (second > 0)
    sum_second_ = make_all_reduce(group, {.count = static_cast<std::int64_t>(second)});
}

template <class F>
void PowerSum::for_each_plain(F&& f) const {
  std::int64_t at = 0;
  for (const Rows& r : rows_) {
    if (at < r.first) f(at, r.first - at);
    at = r.first + r.rows * r.columns;
  }
  if (at < range_.count) f(at, range_.count - at);
}

void PowerSum::run(Staging& staging) {
  staging.wait(0);
  const std::span<std::byte> bytes = staging.packed(0).whole();
  const std::span<float> values(reinterpret_cast<float*>(bytes.data()),
                                bytes.size() / sizeof(float));
  const std::span<float> residual = codec_.residual(range_);
  const int rank = codec_.rank();
  const auto plain_at = static_cast<std::ptrdiff_t>(
      rows_.empty() ? 0 : p_places_.back() + static_cast<std::size_t>(rows_.back().rows * rank));
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Rows& r = rows_[i];
      add_and_multiply(r.size(), rank, residual.empty() ? nullptr : residual.data() + r.first,
                       values.data() + r.first, codec_.q_of(r, range_).data(), p_of(i).data());
    }
    auto to = first_.begin() + plain_at;
    // A part that is plain now may have been encoded before, when messages were cut differently.
    for_each_plain([&](std::int64_t first, std::int64_t count) {
      if (!residual.empty()) {
        for (std::int64_t i = first; i < first + count; ++i)
          values[static_cast<std::size_t>(i)] +=
              std::exchange(residual[static_cast<std::size_t>(i)], 0.0F);
      }
      to = std::copy_n(values.begin() + first, count, to);
    });
  }
  if (sum_first_) sum_first_->sum(first_);
  {
    const Spans::Scope span(group_.spans, SpanKind::compress);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Rows& r = rows_[i];
      const float* const m = values.data() + r.first;
      float* const p = p_of(i).data();
      float* const q = new_q_of(i).data();
      orthogonalise(r.rows, rank, p);
      multiply_transposed(r.size(), rank, m, p, q);
      if (!residual.empty()) subtract_product(r.size(), rank, m, p, q, residual.data() + r.first);
    }
  }
  if (sum_second_) sum_second_->sum(second_);
  const Spans::Scope span(group_.spans, SpanKind::compress);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Rows& r = rows_[i];
    multiply_thin(r.size(), rank, p_of(i).data(), new_q_of(i).data(), values.data() + r.first);
    // A column of zeros would stay zero for ever, so the one before it is used again.
    for (int k = 0; k < rank; ++k) {
      const auto column = new_q_of(i).subspan(static_cast<std::size_t>(k * r.columns),
                                              static_cast<std::size_t>(r.columns));
      if (std::ranges::any_of(column, [](float x) { return x != 0; }))
        std::ranges::copy(column, codec_.q_of(r, range_).begin() + k * r.columns);
    }
  }
  auto from = first_.begin() + plain_at;
  for_each_plain([&](std::int64_t first, std::int64_t count) {
    std::copy_n(from, count, values.begin() + first);
    from += count;
  });
  staging.put(0, staging.packed(0));
}

}  // namespace

std::unique_ptr<Codec> make_powersgd(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<PowerSgd>(static_cast<int>(choice.value), context);
}

}  // namespace tandem
