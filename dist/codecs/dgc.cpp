// DGC, Deep Gradient Compression (Lin et al., 2018). A worker sends only the largest sums of its
// past gradients g. Momentum m is applied before that, by the worker (momentum correction):
//
//   u ← m·u + g;   v ← v + u;       with Nesterov's momentum: u ← m·(u + g);  v ← v + u + g
//   send vᵢ where |vᵢ| is among the RATIO largest of its tensor;  there, v ← 0 and u ← 0 (masking)
//
// v is the residual. The optimizer then gives momentum to the weight decay alone. The first four
// epochs send more: RATIO^(1/5), RATIO^(2/5), … (25%, 6.3%, 1.6%, 0.4% for 0.1%). Tensors of one
// dimension, such as biases, are sent whole and keep their momentum. With CLIP > 0, a gradient
// whose norm exceeds CLIP/√p is scaled down to it. Without error feedback, v is forgotten after
// each iteration.
//
// The threshold of a tensor is estimated from a sample of |v|, as in the paper. But the sample is
// that of the iteration before: so a block can be sent before the rest of its tensor is there, and
// the result does not depend on how the gradient is cut. The first iteration sends everything.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "dist/codecs/codec_table.h"
#include "dist/codecs/sparse_codec.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

constexpr std::int64_t kWarmupEpochs = 4;
constexpr double kSampled = 0.01;   // of a tensor, and
constexpr double kLeastAbove = 64;  // at least so many of the sample above the threshold

class Dgc : public SparseCodec {
 public:
  Dgc(double ratio, double clip, const CodecContext& context);

  void begin(std::int64_t iteration) override {
    if (iteration != iteration_) end_iteration(iteration);
    SparseCodec::begin(iteration);
  }

  std::size_t most_bytes(std::int64_t count) const override {
    return most_sparse_bytes(count, count);
  }
  std::size_t most_sum_bytes(std::int64_t count) const override { return most_bytes(count); }
  std::int64_t plain_elements() const override;

  // A device does not know the norm of a gradient whose parts come one by one.
  bool on_device() const override { return SparseCodec::on_device() && !needs_norm(); }
  Encoding encoding() override;

  bool needs_norm() const override { return clip_ > 0; }
  void set_norm(double norm) override {
    factor_ = static_cast<float>(norm > clip_ ? clip_ / norm : 1);
  }

  std::size_t encode(std::int64_t block, std::span<const float> values, std::byte* to) override;

  void visit(State& state) override;

 private:
  struct Weight {  // a trained tensor
    std::int64_t first, end;
    bool whole;                         // all of it is sent
    std::int64_t stride;                // the distance of elements in the sample
    std::vector<std::uint32_t> sample;  // of |v| in this iteration, before anything is sent

    // The elements at multiples of the stride.
    std::int64_t in_sample() const { return whole ? 0 : parts(end, stride) - parts(first, stride); }
  };

  double ratio(std::int64_t iteration) const;
  void end_iteration(std::int64_t next);
  static double threshold(std::span<std::uint32_t> sample, double ratio);
  void prepare_device();
  void fetch_thresholds();  // from the device
  // Calls f(number of the tensor, its first and last place in the block).
  template <class F>
  void for_each_tensor(std::int64_t block, std::int64_t count, F&& f);

  double ratio_, clip_;
  float factor_ = 1;  // of the gradient, by clipping
  Tensor u_, v_;
  std::vector<Weight> tensors_;     // by address
  std::vector<double> thresholds_;  // by tensor
  Chosen chosen_;

  // On a device, which has the samples and thresholds.
  Tensor parts_, sample_on_device_, thresholds_on_device_;
  bool has_sample_ = false;
  std::optional<double> next_ratio_;  // of thresholds that are still to be made from the sample
};

Dgc::Dgc(double ratio, double clip, const CodecContext& context)
    : SparseCodec(context),
      ratio_(ratio),
      clip_(clip / std::sqrt(static_cast<double>(context.workers))),
      u_(Tensor::zeros({count()}, Dtype::f32, on_device() ? context.device : cpu_device(1))),
      v_(Tensor::zeros({count()}, Dtype::f32, u_.device())) {
  for (const Parameter* p : context.parameters.trained()) {
    const auto n = static_cast<double>(p->shape.count());
    const double sample = std::max(kSampled * n, kLeastAbove / ratio);
    tensors_.push_back({.first = p->offset,
                        .end = p->offset + p->shape.count(),
                        .whole = p->shape.rank() < 2,
                        .stride = std::max<std::int64_t>(1, std::llround(n / sample))});
  }
  thresholds_.resize(tensors_.size());
  if (on_device()) prepare_device();
}

void Dgc::prepare_device() {
  std::vector<Encoding::Part> all;
  std::int64_t sampled = 0;
  for (const Weight& tensor : tensors_) {
    all.push_back({.first = tensor.first,
                   .end = tensor.end,
                   .stride = tensor.stride,
                   .sample_at = sampled,
                   .sample_count = tensor.in_sample(),
                   .whole = tensor.whole});
    sampled += tensor.in_sample();
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(all));
  parts_ = Tensor::empty({std::ssize(bytes)}, Dtype::u8, context_.device);
  context_.device.backend().copy_from_host(bytes, parts_);
  sample_on_device_ = Tensor::from(std::vector<std::int32_t>(static_cast<std::size_t>(sampled)),
                                   {sampled}, context_.device);
  thresholds_on_device_ = Tensor::zeros({std::ssize(tensors_)}, Dtype::f32, context_.device);
}

Encoding Dgc::encoding() {
  has_sample_ = true;
  const std::optional<double> ratio = std::exchange(next_ratio_, std::nullopt);
  return {.form = Encoding::Form::velocities,
          .residual = v_,
          .velocity = u_,
          .sample = sample_on_device_,
          .thresholds = thresholds_on_device_,
          .parts = parts_,
          .part_count = std::ssize(tensors_),
          .new_thresholds = ratio.has_value(),
          .ratio = ratio.value_or(0),
          .momentum = static_cast<float>(context_.momentum),
          .nesterov = context_.nesterov,
          .remembers = context_.error_feedback};
}

std::int64_t Dgc::plain_elements() const {
  std::int64_t elements = 0;
  for (const Weight& tensor : tensors_) elements += tensor.whole ? tensor.end - tensor.first : 0;
  return elements;
}

double Dgc::ratio(std::int64_t iteration) const {
  const std::int64_t epoch = (iteration - 1) / context_.iterations_per_epoch;
  if (iteration < 1 || epoch >= kWarmupEpochs) return ratio_;
  return std::pow(ratio_, static_cast<double>(epoch + 1) / (kWarmupEpochs + 1));
}

// Makes the thresholds of the next iteration. A device makes them when it encodes.
void Dgc::end_iteration(std::int64_t next) {
  if (std::exchange(has_sample_, false)) next_ratio_ = ratio(next);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::vector<std::uint32_t>& sample = tensors_[i].sample;
    if (sample.empty()) continue;
    thresholds_[i] = threshold(sample, ratio(next));
    sample.clear();
  }
}

// The magnitude that `ratio` of the sample reaches, but above zero. First finds its upper bits by
// counting, then puts only those magnitudes in order that have them.
double Dgc::threshold(std::span<std::uint32_t> sample, double ratio) {
  constexpr int kShift = 20;
  std::array<std::int64_t, 1 << (31 - kShift)> counts{};  // by upper bits
  for (const std::uint32_t size : sample) ++counts[size >> kShift];
  auto wanted = std::max<std::int64_t>(1, std::llround(ratio * static_cast<double>(sample.size())));
  std::size_t upper = counts.size() - 1;
  for (; counts[upper] < wanted; --upper) wanted -= counts[upper];
  const auto others =
      std::ranges::partition(sample, [=](std::uint32_t size) { return size >> kShift == upper; });
  const auto nth = sample.begin() + wanted - 1;
  std::ranges::nth_element(sample.begin(), nth, others.begin(), std::greater<>());
  return std::bit_cast<float>(
      std::max(*nth, magnitude_bits(std::numeric_limits<float>::min())));  // zeros are not sent
}

void Dgc::fetch_thresholds() {
  std::ranges::copy(thresholds_on_device_.to_host<float>(), thresholds_.begin());
  const std::optional<double> ratio = std::exchange(next_ratio_, std::nullopt);
  if (!ratio) return;
  const std::vector<std::int32_t> sample = sample_on_device_.to_host<std::int32_t>();
  std::vector<std::uint32_t> all(sample.begin(), sample.end());
  std::span<std::uint32_t> rest = all;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto n = static_cast<std::size_t>(tensors_[i].in_sample());
    if (n > 0) thresholds_[i] = threshold(rest.first(n), *ratio);
    rest = rest.subspan(n);
  }
}

template <class F>
void Dgc::for_each_tensor(std::int64_t block, std::int64_t count, F&& f) {
  const std::int64_t begin = block * kBlock, end = begin + count;
  auto tensor = std::ranges::upper_bound(tensors_, begin, {}, &Weight::end);
  for (; tensor != tensors_.end() && tensor->first < end; ++tensor)
    f(static_cast<std::size_t>(tensor - tensors_.begin()),
      static_cast<std::size_t>(std::max(tensor->first, begin) - begin),
      static_cast<std::size_t>(std::min(tensor->end, end) - begin));
}

std::size_t Dgc::encode(std::int64_t block, std::span<const float> values, std::byte* to) {
  const auto n = static_cast<std::size_t>(values.size()),
             at = static_cast<std::size_t>(block * kBlock);
  float* const u = u_.data<float>() + at;
  float* const v = v_.data<float>() + at;
  const float* const g = values.data();
  const auto m = static_cast<float>(context_.momentum);
  if (context_.nesterov)
    for (std::size_t i = 0; i < n; ++i) {
      const float own = factor_ * g[i];
      u[i] = m * (u[i] + own);
      v[i] += u[i] + own;
    }
  else
    for (std::size_t i = 0; i < n; ++i) {
      u[i] = m * u[i] + factor_ * g[i];
      v[i] += u[i];
    }

  chosen_.count = 0;
  for_each_tensor(block, std::ssize(values),
                  [&](std::size_t number, std::size_t first, std::size_t last) {
                    Weight& tensor = tensors_[number];
                    if (!tensor.whole) {
                      const auto stride = static_cast<std::size_t>(tensor.stride);
                      for (std::size_t i = first + (stride - (at + first) % stride) % stride;
                           i < last; i += stride)
                        tensor.sample.push_back(magnitude_bits(v[i]));
                    }
                    const std::uint32_t least =
                        tensor.whole ? 0 : magnitude_bits(static_cast<float>(thresholds_[number]));
                    chosen_.add_where(first, last,
                                      [&](std::size_t i) { return magnitude_bits(v[i]) >= least; });
                  });
  const bool all = better_whole(chosen_.count, n);
  const std::size_t bytes = all ? encode_whole({v, n}, to) : encode_chosen({v, n}, chosen_, to);

  // What was sent is forgotten. Tensors that are sent whole keep their momentum.
  std::size_t next = 0;
  for_each_tensor(block, std::ssize(values),
                  [&](std::size_t number, std::size_t first, std::size_t last) {
                    const auto forget = [&, whole = tensors_[number].whole](std::size_t i) {
                      v[i] = 0;
                      if (!whole) u[i] = 0;
                    };
                    if (all)
                      for (std::size_t i = first; i < last; ++i) forget(i);
                    for (; next < chosen_.count && chosen_.places[next] < last; ++next)
                      forget(chosen_.places[next]);
                  });
  if (!context_.error_feedback) std::fill_n(v, n, 0.0F);
  return bytes;
}

void Dgc::visit(State& state) {
  end_iteration(iteration_ + 1);
  if (on_device()) fetch_thresholds();
  state("velocity", u_);
  state("residual", v_);
  state("thresholds", thresholds_);
  if (!on_device()) return;
  std::vector<float> thresholds;
  for (const double threshold : thresholds_) thresholds.push_back(static_cast<float>(threshold));
  thresholds_on_device_.copy_from_host(std::span<const float>(thresholds));
}

}  // namespace

std::unique_ptr<Codec> make_dgc(const CodecChoice& choice, const CodecContext& context) {
  return std::make_unique<Dgc>(choice.value, choice.second, context);
}

}  // namespace tandem
