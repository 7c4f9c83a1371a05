// The mathematics of a device, queued on its queue (device_queue.h). tensor/cpu and tensor/cuda
// implement it. Tests compare every call of the CPU with a slow, obvious reference, and every call
// of the GPU with the CPU.
//
// The caller allocates the outputs, on this device. They must not overlap the inputs unless stated
// otherwise. The caller (autograd/ops) checks shapes; a backend may assume that they fit.
// `accumulate` adds to the output instead of overwriting it.
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

// How a filter [k, r, s, c / groups] moves over images [n, h, w, c].
struct Convolution {
  HeightWidth stride = 1;
  HeightWidth padding = 0;    // zeros above and below, and left and right
  std::int64_t dilation = 1;  // the same in both directions
  std::int64_t groups = 1;    // independent parts of the channels

  // Number of positions of a window of `window` in `size` pixels; 0 if it does not fit.
  std::int64_t rows(std::int64_t size, std::int64_t window) const {
    return positions(size, window, stride.height, padding.height);
  }
  std::int64_t columns(std::int64_t size, std::int64_t window) const {
    return positions(size, window, stride.width, padding.width);
  }

 private:
  std::int64_t positions(std::int64_t size, std::int64_t window, std::int64_t step,
                         std::int64_t zeros) const {
    const std::int64_t span = size + 2 * zeros - dilation * (window - 1) - 1;
    return span < 0 ? 0 : span / step + 1;
  }
};

// A square window of a pooling operation.
struct Pool {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;   // at every edge; never a maximum, 0 in an average
  bool ceil_mode = false;     // the last window may reach beyond the edge
  bool count_padding = true;  // an average counts the padding's pixels

  // The position of a maximum is stored in a byte, as row · window + column.
  static constexpr std::int64_t kLargestWindow = 15;

  // Number of windows along `size` pixels, as in torch.nn.MaxPool2d and AvgPool2d; 0 if none fits.
  std::int64_t positions(std::int64_t size) const {
    const std::int64_t span = size + 2 * padding - window + (ceil_mode ? stride - 1 : 0);
    if (span < 0) return 0;
    const std::int64_t count = span / stride + 1;
    // The last window must begin in the image or in the padding before it.
    return ceil_mode && (count - 1) * stride >= size + padding ? count - 1 : count;
  }
};

// The destination of a gradient; undefined if it is not needed.
struct GradientInto {
  Tensor tensor;
  bool accumulate = false;
};

// z = (x - mean) · inverse_deviation · weight + bias for x[…, c]; each of the four is [c]. The same
// pass computes y = z, relu(z) or relu(z + residual).
struct ChannelNorm {
  enum class After { nothing, relu, add_relu };
  Tensor mean, inverse_deviation, weight, bias;
  After after = After::nothing;
};

// Running averages: running += momentum · (batch statistics - running).
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

// One of the random streams of a step. A GPU keeps the step's key in its own memory (begin_step),
// so that a recorded step draws new numbers in every replay.
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

// One step of SGD with d = decay·w:
//   v = momentum·v + g + d;   w -= rate·(nesterov ? g + d + momentum·v : v)
// and, if the gradient g has its momentum already, so that only the decay needs one:
//   v = momentum·v + d;       w -= rate·(g + (nesterov ? d + momentum·v : v))
struct SgdStep {
  double rate = 0;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool gradient_has_momentum = false;
};

class Backend : public DeviceQueue {
 public:
  virtual void fill(const Tensor& x, double value) = 0;
  void fill_zero(const Tensor& x) { fill(x, 0); }
  // Converts between f32 and bf16, or copies. The counts are equal.
  virtual void cast(const Tensor& from, const Tensor& to) = 0;

  // The algorithms chosen for the shapes so far, one line each, for a person.
  virtual std::string describe_choices() const { return ""; }
  // Whether a gradient may be passed in two parts, which its reader adds. This saves a pass over
  // memory where memory limits the speed.
  virtual bool adds_in_parts() const { return false; }

  // Independent products in one call, so that small ones together use all threads.
  virtual void matmul(std::span<const Matmul> products) = 0;
  void matmul(const Matmul& product) { matmul(std::span(&product, 1)); }

  // y[n, out] = x[n, in] · weight[out, in]ᵀ + bias[out], followed by ReLU if `relu`. (A GPU's
  // libraries may turn NaN into 0 there.)
  virtual void linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu,
                      const Tensor& y) = 0;
  // dx = dy·weight, dweight = dyᵀ·x, dbias = Σ_n dy. `rectified` means that x comes from a ReLU: dx
  // is set to 0 where x is not above 0. If dx is accumulated, its old value must be 0 there too.
  virtual void linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy,
                               bool rectified, const LinearGradients& into) = 0;

  // Rows and columns: y[r, c] += bias[c]; sums[c] = Σ_r x[r, c].
  virtual void add_bias(const Tensor& bias, const Tensor& y) = 0;
  virtual void sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) = 0;
  // masked = dy, but 0 where y <= 0; bias[c] = Σ_r masked[r, c] if bias is defined. `masked` may be
  // dy.
  virtual void relu_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& masked,
                                  const GradientInto& bias) = 0;

  // x[n, h, w, c], filter[k, r, s, c / groups], y[n, p, q, k], bias[k] or undefined; followed by
  // ReLU if `relu`, as in linear().
  virtual void conv2d(const Convolution& convolution, const Tensor& x, const Tensor& filter,
                      const Tensor& bias, bool relu, const Tensor& y) = 0;
  virtual void conv2d_data_gradient(const Convolution& convolution, const Tensor& dy,
                                    const Tensor& filter, const Tensor& dx, bool accumulate) = 0;
  virtual void conv2d_filter_gradient(const Convolution& convolution, const Tensor& x,
                                      const Tensor& dy, const Tensor& dfilter, bool accumulate) = 0;

  // Windows over x[n, h, w, c], y[n, p, q, c]. `winners` (u8, of y's shape) receives the position
  // of each maximum in its window, as row · window + column. Of equal values the first wins; NaN
  // beats all.
  virtual void max_pool(const Pool& pool, const Tensor& x, const Tensor& y,
                        const Tensor& winners) = 0;
  virtual void max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                                 const Tensor& dx, bool accumulate) = 0;
  // A mean counts the padding, unless told otherwise, but not what a window of ceil_mode covers
  // beyond it.
  virtual void average_pool(const Pool& pool, const Tensor& x, const Tensor& y) = 0;
  virtual void average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                                     bool accumulate) = 0;
  // Means over the windows of y[n, p, q, c], which have nearly equal sizes: window i of p covers
  // pixels floor(i·h/p) to ceil((i+1)·h/p) of h. Windows overlap if p does not divide h, and repeat
  // pixels if p is larger.
  virtual void adaptive_average_pool(const Tensor& x, const Tensor& y) = 0;
  virtual void adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                              bool accumulate) = 0;
  virtual void global_average_pool(const Tensor& x, const Tensor& y) = 0;  // to y[n, c]
  virtual void global_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                            bool accumulate) = 0;

  // The statistics of x[…, c] per channel: mean and 1 / sqrt(variance + epsilon), both [c]. Every
  // channel needs at least two values. Also updates `running`.
  virtual void batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                                const Tensor& inverse_deviation,
                                const RunningStatistics& running) = 0;
  // The same for a known variance.
  virtual void inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) = 0;
  // `residual` and y have x's shape. `residual` is defined only if `norm` adds it. In that case the
  // result tells the gradient where y is above 0. It is y itself, or something smaller.
  virtual Tensor channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                              const Tensor& y) = 0;
  // For a mean and inverse_deviation that are x's own statistics. `positive` is channel_norm's
  // result. The gradient of y is dy + more, or dy if `more` is undefined. The gradients may not
  // overlap, except weight and bias.
  virtual void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x,
                                     const Tensor& positive, const Tensor& dy, const Tensor& more,
                                     const ChannelNormGradients& into) = 0;

  // Over the last dimension of x[…, c].
  virtual void local_response_norm(const LocalResponseNorm& norm, const Tensor& x,
                                   const Tensor& y) = 0;
  virtual void local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x,
                                            const Tensor& dy, const Tensor& dx,
                                            bool accumulate) = 0;

  // y[…, c] is the parts[i][…, cᵢ] side by side: c = Σ cᵢ, and the other sizes are equal.
  virtual void concat(std::span<const Tensor> parts, const Tensor& y) = 0;
  // Copies or adds each part's columns of dy[…, c]. A part whose gradient is not needed has columns
  // too: they are skipped.
  struct ConcatPart {
    std::int64_t columns;
    GradientInto into;
  };
  virtual void concat_gradient(const Tensor& dy, std::span<const ConcatPart> parts) = 0;

  // Element-wise.
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& y) = 0;  // y may be a or b
  // y = alpha·a + beta·b, with each operation rounded, so that all devices give the same bits. y
  // may be a or b. axpy and scale are special cases.
  virtual void weighted_sum(double alpha, const Tensor& a, double beta, const Tensor& b,
                            const Tensor& y) = 0;
  virtual void relu(const Tensor& x, const Tensor& y) = 0;  // NaN stays NaN; y may be x
  // dx = 0 where y <= 0, else dy; dx may be dy.
  virtual void relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx,
                             bool accumulate) = 0;
  // y[i] = x[i] / keep with probability `keep`, otherwise 0. The choice depends only on i and
  // `random`, so the same call with dy computes the gradient.
  virtual void dropout(const Tensor& x, double keep, const StepRandom& random, const Tensor& y,
                       bool accumulate) = 0;

  // For the rows of logits[n, classes] with labels[n]: `probabilities` is the softmax, and loss =
  // scale · Σ_n cross-entropy. The target is 1 - smoothing at the label plus smoothing/classes
  // everywhere. The gradient is dloss · scale · (probabilities - target).
  virtual void softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                                     double scale, const Tensor& probabilities,
                                     const Tensor& loss) = 0;
  virtual void softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                              double smoothing, double scale, const Tensor& dloss,
                                              const Tensor& dlogits, bool accumulate) = 0;
  // The number of rows whose largest logit (the first of equals) is at the label. Waits for the
  // result.
  virtual std::int64_t count_correct(const Tensor& logits, const Tensor& labels) = 0;

  // `low`, if defined, receives the new value in bf16.
  virtual void sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum,
                   const Tensor& value, const Tensor& low) = 0;

 protected:
  using DeviceQueue::DeviceQueue;
};

}  // namespace tandem
