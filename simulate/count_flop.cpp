#include "simulate/count_flop.h"

#include <map>
#include <memory>
#include <set>

#include "base/phantom_memory.h"
#include "tensor/cpu/cpu_backend.h"

namespace tandem {
namespace {

// Batch normalisation needs two values per channel, which some have only in two images.
constexpr std::int64_t kBatch = 2;

// Batch normalisation, per value of its input. The bias is one sum more, and so is its gradient.
// Forward: the mean 1, the variance 3, the difference and the two factors 3.
constexpr double kNormForward = 7;
// Backward: x̂ 2, Σ dy·x̂ 2, and dx with two differences and two factors 4.
constexpr double kNormBackward = 8;

double count_of(const Tensor& tensor) { return static_cast<double>(tensor.count()); }

// A product of each result with one filter, or one row of a matrix.
double product(const Tensor& weight, const Tensor& result) {
  return 2 * count_of(result) * count_of(weight) / static_cast<double>(weight.size(0));
}

class CountingBackend : public CpuBackend {
 public:
  CountingBackend() : CpuBackend(1, new_phantom, delete_phantom) {}

  struct Flop {
    double forward = 0, backward = 0;
  };
  Flop of(const Parameter& parameter) {
    return {forward_[parameter.value.raw()],
            backward_[parameter.gradient.raw()] + backward_[parameter.value.raw()]};
  }

  const char* name() const override { return "counting"; }

  void linear(const Tensor&, const Tensor& weight, const Tensor& bias, bool,
              const Tensor& y) override {
    forward_[weight.raw()] += product(weight, y);
    forward_[bias.raw()] += count_of(y);
  }
  void linear_gradient(const Tensor&, const Tensor& weight, const Tensor& dy, bool,
                       const LinearGradients& into) override {
    if (into.x.tensor.defined()) backward_[weight.raw()] += product(weight, dy);
    if (into.weight.tensor.defined())
      backward_[into.weight.tensor.raw()] += product(into.weight.tensor, dy);
    if (into.bias.tensor.defined()) backward_[into.bias.tensor.raw()] += count_of(dy);
  }
  void sum_rows(const Tensor& x, const Tensor& sums, bool) override {
    backward_[sums.raw()] += count_of(x);
  }
  void relu_bias_gradient(const Tensor&, const Tensor& dy, const Tensor&,
                          const GradientInto& bias) override {
    if (bias.tensor.defined()) backward_[bias.tensor.raw()] += count_of(dy);
  }

  void conv2d(const Convolution&, const Tensor&, const Tensor& filter, const Tensor& bias, bool,
              const Tensor& y) override {
    forward_[filter.raw()] += product(filter, y);
    if (bias.defined()) forward_[bias.raw()] += count_of(y);
  }
  void conv2d_data_gradient(const Convolution&, const Tensor& dy, const Tensor& filter,
                            const Tensor&, bool) override {
    backward_[filter.raw()] += product(filter, dy);
  }
  void conv2d_filter_gradient(const Convolution&, const Tensor&, const Tensor& dy,
                              const Tensor& dfilter, bool) override {
    backward_[dfilter.raw()] += product(dfilter, dy);
  }

  Tensor channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor&,
                      const Tensor& y) override {
    forward_[norm.weight.raw()] += kNormForward * count_of(x);
    forward_[norm.bias.raw()] += count_of(x);
    return y;
  }
  void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x, const Tensor&, const Tensor&,
                             const Tensor&, const ChannelNormGradients&) override {
    backward_[norm.weight.raw()] += kNormBackward * count_of(x);
    backward_[norm.bias.raw()] += count_of(x);
  }

  // The others compute nothing, because there is nothing to read.
  void copy_from_host(std::span<const std::byte>, const Tensor&) override {}
  void copy(const Tensor&, const Tensor&) override {}
  void fill(const Tensor&, double) override {}
  void cast(const Tensor&, const Tensor&) override {}
  void max_pool(const Pool&, const Tensor&, const Tensor&, const Tensor&) override {}
  void max_pool_gradient(const Pool&, const Tensor&, const Tensor&, const Tensor&, bool) override {}
  void average_pool(const Pool&, const Tensor&, const Tensor&) override {}
  void average_pool_gradient(const Pool&, const Tensor&, const Tensor&, bool) override {}
  void adaptive_average_pool(const Tensor&, const Tensor&) override {}
  void adaptive_average_pool_gradient(const Tensor&, const Tensor&, bool) override {}
  void global_average_pool(const Tensor&, const Tensor&) override {}
  void global_average_pool_gradient(const Tensor&, const Tensor&, bool) override {}
  void batch_statistics(const Tensor&, double, const Tensor&, const Tensor&,
                        const RunningStatistics&) override {}
  void local_response_norm(const LocalResponseNorm&, const Tensor&, const Tensor&) override {}
  void local_response_norm_gradient(const LocalResponseNorm&, const Tensor&, const Tensor&,
                                    const Tensor&, bool) override {}
  void concat(std::span<const Tensor>, const Tensor&) override {}
  void concat_gradient(const Tensor&, std::span<const ConcatPart>) override {}
  void add(const Tensor&, const Tensor&, const Tensor&) override {}
  void weighted_sum(double, const Tensor&, double, const Tensor&, const Tensor&) override {}
  void relu(const Tensor&, const Tensor&) override {}
  void relu_gradient(const Tensor&, const Tensor&, const Tensor&, bool) override {}
  void dropout(const Tensor&, double, const StepRandom&, const Tensor&, bool) override {}
  void softmax_cross_entropy(const Tensor&, const Tensor&, double, double, const Tensor&,
                             const Tensor&) override {}
  void softmax_cross_entropy_gradient(const Tensor&, const Tensor&, double, double, const Tensor&,
                                      const Tensor&, bool) override {}

 private:
  // By the address of a parameter's value or gradient.
  std::map<const std::byte*, double> forward_, backward_;
};

// The parameters in the order of their first use.
class Uses : public Hooks {
 public:
  void before_use(Parameter& parameter) override {
    if (seen_.insert(&parameter).second) order.push_back(&parameter);
  }
  std::vector<const Parameter*> order;

 private:
  std::set<const Parameter*> seen_;
};

}  // namespace

std::vector<NetTable::Tensor> count_flop(Layer& model, const Shape& image) {
  auto backend = std::make_shared<CountingBackend>();
  const Device device(backend);
  const auto named = model.parameters();
  for (const ParameterSet::Named& n : named) n.parameter->initial = nullptr;  // nobody reads them
  const ParameterSet parameters(named, device);

  Uses uses;
  Tape tape;
  tape.set_hooks(&uses);
  tape.begin(Tape::Mode::training);
  const Var x{Tensor::empty({kBatch, image[0], image[1], image[2]}, Dtype::f32, device)};
  const Tensor labels = Tensor::empty({kBatch}, Dtype::i32, device);
  tape.backward(model.loss(tape, x, labels, {}), parameters);

  std::vector<NetTable::Tensor> tensors;
  for (const Parameter* p : uses.order) {
    if (!p->trained()) continue;
    const CountingBackend::Flop flop = backend->of(*p);
    tensors.push_back({p->name, p->shape.count(), flop.forward / kBatch, flop.backward / kBatch});
  }
  return tensors;
}

}  // namespace tandem
