// The CPU backend: every operation is split into tiles over the worker's own threads. Each
// operation is implemented in the file of its loops, such as max_pool.cpp or softmax.cpp.
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int threads);
  // With other memory, for example memory that a GPU reads fast.
  CpuBackend(int threads, MemoryPool::Allocate allocate, MemoryPool::Free free);

  const char* name() const override { return "cpu"; }
  bool is_cpu() const override { return true; }

  void copy_from_host(std::span<const std::byte> from, const Tensor& to) override;
  void copy_to_host(const Tensor& from, std::span<std::byte> to) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void fill(const Tensor& x, double value) override;
  void cast(const Tensor& from, const Tensor& to) override;

  using Backend::matmul;
  void matmul(std::span<const Matmul> products) override;

  void linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu,
              const Tensor& y) override;
  void linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy, bool rectified,
                       const LinearGradients& into) override;
  void add_bias(const Tensor& bias, const Tensor& y) override;
  void sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) override;
  void relu_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& masked,
                          const GradientInto& bias) override;

  void conv2d(const Convolution& convolution, const Tensor& x, const Tensor& filter,
              const Tensor& bias, bool relu, const Tensor& y) override;
  void conv2d_data_gradient(const Convolution& convolution, const Tensor& dy, const Tensor& filter,
                            const Tensor& dx, bool accumulate) override;
  void conv2d_filter_gradient(const Convolution& convolution, const Tensor& x, const Tensor& dy,
                              const Tensor& dfilter, bool accumulate) override;

  void max_pool(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& winners) override;
  void max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                         const Tensor& dx, bool accumulate) override;
  void average_pool(const Pool& pool, const Tensor& x, const Tensor& y) override;
  void average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                             bool accumulate) override;
  void adaptive_average_pool(const Tensor& x, const Tensor& y) override;
  void adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate) override;
  void global_average_pool(const Tensor& x, const Tensor& y) override;
  void global_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate) override;

  void batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                        const Tensor& inverse_deviation, const RunningStatistics& running) override;
  void inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) override;
  Tensor channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                      const Tensor& y) override;
  void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x, const Tensor& positive,
                             const Tensor& dy, const Tensor& more,
                             const ChannelNormGradients& into) override;

  void local_response_norm(const LocalResponseNorm& norm, const Tensor& x,
                           const Tensor& y) override;
  void local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x,
                                    const Tensor& dy, const Tensor& dx, bool accumulate) override;

  void concat(std::span<const Tensor> parts, const Tensor& y) override;
  void concat_gradient(const Tensor& dy, std::span<const ConcatPart> parts) override;

  void add(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void weighted_sum(double alpha, const Tensor& a, double beta, const Tensor& b,
                    const Tensor& y) override;
  void relu(const Tensor& x, const Tensor& y) override;
  void relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx, bool accumulate) override;
  void dropout(const Tensor& x, double keep, const StepRandom& random, const Tensor& y,
               bool accumulate) override;

  void softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                             double scale, const Tensor& probabilities,
                             const Tensor& loss) override;
  void softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                      double smoothing, double scale, const Tensor& dloss,
                                      const Tensor& dlogits, bool accumulate) override;
  std::int64_t count_correct(const Tensor& logits, const Tensor& labels) override;

  void sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum, const Tensor& value,
           const Tensor& low) override;

 private:
  // Tells OpenBLAS, once per process, to use no threads of its own.
  static void use_single_threaded_blas();

  ThreadPool threads_;
};

}  // namespace tandem
