// The mathematics of a device, queued on its queue (device_queue.h): implemented by tensor/cpu and
// tensor/cuda. Tests compare every call of the CPU with a slow, obvious reference, and every call
// of the GPU with the CPU.
//
// The caller allocates outputs, on this device. They do not overlap inputs unless said. Shapes are
// checked where tensors are made (autograd/ops); a backend may assume that they fit. `accumulate`
// adds to the output instead of overwriting it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/random.h"
#include "tensor/device_queue.h"
#include "tensor/tensor.h"

namespace tandem {

// c = op(a)·op(b), or c += …, where op transposes or not; c is [m, n] and row-major like a and b.
struct Matmul {
  Tensor a;
  bool transpose_a = false;
  Tensor b;
  bool transpose_b = false;
  Tensor c;
  bool accumulate = false;
};

// How a filter [k, r, s, c / groups] moves over images [n, h, w, c]; the same in both directions.
struct Convolution {
  std::int64_t stride = 1;
  std::int64_t padding = 0;  // zeros at every edge
  std::int64_t dilation = 1;
  std::int64_t groups = 1;  // parts of the channels that do not see each other

  // Positions of a window of `window` in `size` pixels; 0 or less if it does not fit.
  std::int64_t positions(std::int64_t size, std::int64_t window) const {
    const std::int64_t span = size + 2 * padding - dilation * (window - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
  }
};

// A square window of a pooling operation.
struct Pool {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;  // at every edge; never chosen as a maximum, counts as 0 in an average
  bool ceil_mode = false;    // a last window may reach over the edge

  // Where a maximum was is kept in a byte, as row · window + column.
  static constexpr std::int64_t kLargestWindow = 15;

  // Windows along `size` pixels, as torch.nn.MaxPool2d and AvgPool2d count them; 0 if none fits.
  std::int64_t positions(std::int64_t size) const {
    const std::int64_t span = size + 2 * padding - window + (ceil_mode ? stride - 1 : 0);
    if (span < 0) return 0;
    const std::int64_t count = span / stride + 1;
    // The last window must begin in the image or in the padding before it.
    return ceil_mode && (count - 1) * stride >= size + padding ? count - 1 : count;
  }
};

// Where a gradient goes; undefined where nobody wants it.
struct GradientInto {
  Tensor tensor;
  bool accumulate = false;
};

// z = (x - mean) · inverse_deviation · weight + bias for x[…, c], each of them [c], and what
// becomes of z in the same pass: y = z, relu(z) or relu(z + residual).
struct ChannelNorm {
  enum class After { nothing, relu, add_relu };
  Tensor mean, inverse_deviation, weight, bias;
  After after = After::nothing;
};

// Moved by `momentum` of the way towards the statistics of a batch.
struct RunningStatistics {
  Tensor mean, variance;  // [c]; the variance is the unbiased one
  double momentum = 0.1;
};

struct ChannelNormGradients {
  GradientInto x, residual, weight, bias;
};

struct LinearGradients {
  GradientInto x, weight, bias;
};

// One of the random streams of a step. A device may keep the step's key in its own memory
// (begin_step), so that a recorded step draws new numbers in every replay.
struct StepRandom {
  Random step;
  std::uint64_t stream = 0;

  Random random() const { return step.split(stream); }
};

// x / (k + alpha/size · Σ x²)^beta, the sum over the channels c - size/2 … c + (size - 1)/2.
struct LocalResponseNorm {
  std::int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 1;
};

// One step of SGD: g += decay·w; v = momentum·v + g; w -= rate·(nesterov ? g + momentum·v : v).
struct SgdStep {
  double rate = 0;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class Backend : public DeviceQueue {
 public:
  virtual void fill(const Tensor& x, double value) = 0;
  void fill_zero(const Tensor& x) { fill(x, 0); }
  // Between f32 and bf16, or copies. The counts are the same.
  virtual void cast(const Tensor& from, const Tensor& to) = 0;

  // Which algorithms have been chosen for which shapes, a line each; for a person.
  virtual std::string describe_choices() const { return ""; }
  // Whether the gradient of a value may come in two parts, to be added by whoever reads it. It
  // spares a pass over memory where that is what takes the time.
  virtual bool adds_in_parts() const { return false; }

  // Independent products, done together so that small ones can fill all threads.
  virtual void matmul(std::span<const Matmul> products) = 0;
  void matmul(const Matmul& product) { matmul(std::span(&product, 1)); }

  // y[n, out] = x[n, in] · weight[out, in]ᵀ + bias[out], then ReLU if asked for (the libraries of a
  // GPU may make 0 of NaN there).
  virtual void linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu,
                      const Tensor& y) = 0;
  // dx = dy·weight, dweight = dyᵀ·x, dbias = Σ_n dy. With `rectified`, what is put into dx is 0
  // where x is not above 0, because x comes from a ReLU, and what was there before must be so too.
  virtual void linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy,
                               bool rectified, const LinearGradients& into) = 0;

  // Rows and columns: y[r, c] += bias[c]; sums[c] = Σ_r x[r, c].
  virtual void add_bias(const Tensor& bias, const Tensor& y) = 0;
  virtual void sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) = 0;
  // masked = dy, but 0 where y <= 0; bias[c] = Σ_r masked[r, c] where that is wanted. It may be dy.
  virtual void relu_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& masked,
                                  const GradientInto& bias) = 0;

  // x[n, h, w, c], filter[k, r, s, c / groups], y[n, p, q, k], bias[k] or undefined; then ReLU if
  // asked for (as in linear).
  virtual void conv2d(const Convolution& convolution, const Tensor& x, const Tensor& filter,
                      const Tensor& bias, bool relu, const Tensor& y) = 0;
  virtual void conv2d_data_gradient(const Convolution& convolution, const Tensor& dy,
                                    const Tensor& filter, const Tensor& dx, bool accumulate) = 0;
  virtual void conv2d_filter_gradient(const Convolution& convolution, const Tensor& x,
                                      const Tensor& dy, const Tensor& dfilter, bool accumulate) = 0;

  // Windows over x[n, h, w, c], y[n, p, q, c]. `winners` (u8, of y's shape) is where in its window,
  // row · window + column, each maximum was; the first of equals, but NaN beats all.
  virtual void max_pool(const Pool& pool, const Tensor& x, const Tensor& y,
                        const Tensor& winners) = 0;
  virtual void max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                                 const Tensor& dx, bool accumulate) = 0;
  // A mean counts the padding, but not what a window of ceil_mode sees beyond it.
  virtual void average_pool(const Pool& pool, const Tensor& x, const Tensor& y) = 0;
  virtual void average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                                     bool accumulate) = 0;
  // Means over as many windows as y[n, p, q, c] has, of nearly equal size: window i of p along h
  // pixels is those from floor(i·h/p) to ceil((i+1)·h/p). They overlap where p does not divide h,
  // and repeat pixels where p is larger.
  virtual void adaptive_average_pool(const Tensor& x, const Tensor& y) = 0;
  virtual void adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                              bool accumulate) = 0;
  virtual void global_average_pool(const Tensor& x, const Tensor& y) = 0;  // to y[n, c]
  virtual void global_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                            bool accumulate) = 0;

  // The statistics of x[…, c] per channel: its mean and 1 / sqrt(variance + epsilon), [c]. Needs
  // two values per channel. `running` is moved towards them.
  virtual void batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                                const Tensor& inverse_deviation,
                                const RunningStatistics& running) = 0;
  // The same from a variance that is known.
  virtual void inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) = 0;
  // `residual` and y have x's shape; the residual is undefined unless `norm` adds it. Where it
  // does, the result tells the gradient where y is above 0: y itself, or something smaller.
  virtual Tensor channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                              const Tensor& y) = 0;
  // Where mean and inverse_deviation are x's own. `positive` is what channel_norm returned. The
  // gradient of y is dy + more, or dy where `more` is undefined. No two of the gradients may
  // overlap, except weight and bias.
  virtual void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x,
                                     const Tensor& positive, const Tensor& dy, const Tensor& more,
                                     const ChannelNormGradients& into) = 0;

  // Over the last size of x[…, c].
  virtual void local_response_norm(const LocalResponseNorm& norm, const Tensor& x,
                                   const Tensor& y) = 0;
  virtual void local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x,
                                            const Tensor& dy, const Tensor& dx,
                                            bool accumulate) = 0;

  // Element-wise.
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& y) = 0;  // y may be a or b
  // y = alpha·a + beta·b, rounded three times, so that devices agree on the bits; y may be a or b.
  // axpy and scale are special cases.
  virtual void weighted_sum(double alpha, const Tensor& a, double beta, const Tensor& b,
                            const Tensor& y) = 0;
  virtual void relu(const Tensor& x, const Tensor& y) = 0;  // NaN stays NaN; y may be x
  // dx = 0 where y <= 0, else dy; dx may be dy.
  virtual void relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx,
                             bool accumulate) = 0;
  // y[i] = x[i] / keep with probability `keep`, else 0; i and `random` alone decide, so the same
  // call with dy gives the gradient.
  virtual void dropout(const Tensor& x, double keep, const StepRandom& random, const Tensor& y,
                       bool accumulate) = 0;

  // Over the rows of logits[n, classes] with labels[n]: `probabilities` is the softmax, and
  // loss = scale · Σ_n cross-entropy, the target being 1 - smoothing at the label plus
  // smoothing/classes everywhere. The gradient is dloss · scale · (probabilities - target).
  virtual void softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                                     double scale, const Tensor& probabilities,
                                     const Tensor& loss) = 0;
  virtual void softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                              double smoothing, double scale, const Tensor& dloss,
                                              const Tensor& dlogits, bool accumulate) = 0;
  // How many rows have their largest logit (the first of equals) at the label. Waits.
  virtual std::int64_t count_correct(const Tensor& logits, const Tensor& labels) = 0;

  // `low`, if it is defined, becomes the value in bf16.
  virtual void sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum,
                   const Tensor& value, const Tensor& low) = 0;

 protected:
  using DeviceQueue::DeviceQueue;
};

}  // namespace tandem
