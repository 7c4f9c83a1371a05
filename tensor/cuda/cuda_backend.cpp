// The CUDA backend: passes tensors to the kernels in kernels/, to cuBLAS (products.h) and to cuDNN
// (convolution.h). All work goes to the worker's stream, in order. Only copies to and from the host
// wait.
#include "tensor/cuda/cuda_backend.h"

#include <cstdlib>
#include <vector>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cuda/blas/products.h"
#include "tensor/cuda/convolution/convolution.h"
#include "tensor/cuda/queue/context.h"
#include "tensor/cuda/queue/encoded_staging.h"
#include "tensor/cuda/queue/event.h"
#include "tensor/cuda/queue/feed.h"
#include "tensor/cuda/queue/low_rank_staging.h"
#include "tensor/cuda/queue/recording.h"
#include "tensor/cuda/queue/staging.h"

namespace tandem {
namespace {

using cuda::check;
using cuda::Context;
using cuda::type_of;

void* allocate(int device, std::size_t bytes) {
  check(cudaSetDevice(device), "choosing a device");
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) == cudaSuccess) return data;
  cudaGetLastError();  // clear it: the caller reports the failure
  return nullptr;
}

void* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  if (cudaHostAlloc(&data, bytes, cudaHostAllocPortable) == cudaSuccess) return data;
  cudaGetLastError();
  return nullptr;
}

std::int64_t rows_of(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.count() / x.size(-1); }

cuda::ChannelNorm parts(const ChannelNorm& n) {
  const auto after = n.after == ChannelNorm::After::add_relu ? cuda::NormAfter::add_relu
                     : n.after == ChannelNorm::After::relu   ? cuda::NormAfter::relu
                                                             : cuda::NormAfter::nothing;
  return {n.mean.data<float>(), n.inverse_deviation.data<float>(), n.weight.data<float>(),
          n.bias.data<float>(), after};
}

cuda::PoolShape pool_shape(const Pool& pool, const Tensor& x, const Tensor& y) {
  return {x.size(0), x.size(1),   x.size(2),   x.size(3),    y.size(1),
          y.size(2), pool.window, pool.stride, pool.padding, pool.count_padding};
}

cuda::ResponseNorm parts(const LocalResponseNorm& n) {
  return {static_cast<int>(n.size), static_cast<float>(n.alpha), static_cast<float>(n.beta),
          static_cast<float>(n.k)};
}

float* data_or_null(const Tensor& x) { return x.defined() ? x.data<float>() : nullptr; }
void* raw_or_null(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& o)
      : Backend([device = o.index](std::size_t bytes) { return allocate(device, bytes); },
                [](void* data) { cudaFree(data); }),
        context_(o.index, o.precision, o.deterministic),
        products_(context_),
        convolutions_(context_, products_),
        side_(o.index, o.precision, o.deterministic),
        side_products_(side_) {}
  ~CudaBackend() override { cudaStreamSynchronize(context_.stream); }

  const char* name() const override { return "cuda"; }
  bool is_cpu() const override { return false; }
  void use_on_this_thread() const override { context_.make_current(); }

  void copy_from_host(std::span<const std::byte> from, const Tensor& to) override {
    if (from.empty()) return;
    check(cudaMemcpyAsync(to.raw(), from.data(), from.size(), cudaMemcpyHostToDevice, stream()),
          "copying to the GPU");
    check(cudaStreamSynchronize(stream()), "copying to the GPU");
  }
  void copy_to_host(const Tensor& from, std::span<std::byte> to) override {
    if (to.empty()) return;
    check(cudaMemcpyAsync(to.data(), from.raw(), to.size(), cudaMemcpyDeviceToHost, stream()),
          "copying from the GPU");
    check(cudaStreamSynchronize(stream()), "copying from the GPU");
  }
  void copy(const Tensor& from, const Tensor& to) override {
    check(cudaMemcpyAsync(to.raw(), from.raw(), from.bytes(), cudaMemcpyDeviceToDevice, stream()),
          "copying on the GPU");
  }
  void fill(const Tensor& x, double value) override {
    if (value == 0)
      check(cudaMemsetAsync(x.raw(), 0, x.bytes(), stream()), "zeroing memory");
    else
      cuda::fill(queue(), type_of(x), x.raw(), x.count(), static_cast<float>(value));
  }
  void cast(const Tensor& from, const Tensor& to) override {
    if (from.dtype() == to.dtype()) return copy(from, to);
    cuda::cast(queue(), type_of(from), from.raw(), type_of(to), to.raw(), to.count());
  }

  EventPtr record_event(Event::Timing timing) override {
    auto event = events_->take(timing);
    event->record(stream(), recording_);
    return event;
  }
  void wait_for(const EventPtr& event) override { cuda::CudaEvent::let_wait(stream(), event); }
  std::shared_ptr<Backend> make_host() override {
    return std::make_shared<CpuBackend>(1, allocate_pinned, [](void* data) { cudaFreeHost(data); });
  }
  void read_later(const Tensor& from, const Tensor& to_host) override {
    check(
        cudaMemcpyAsync(to_host.raw(), from.raw(), from.bytes(), cudaMemcpyDeviceToHost, stream()),
        "copying from the GPU");
  }
  std::unique_ptr<Staging> make_staging(Packing packing, std::int64_t count,
                                        std::int64_t block) override {
    if (packing == Packing::ternary) return nullptr;
    return std::make_unique<cuda::CudaStaging>(context_, copy_streams_, packing, count, block);
  }
  bool encodes() const override { return true; }
  std::unique_ptr<EncodedStaging> make_encoded_staging(
      const EncodedStaging::Layout& layout) override {
    return std::make_unique<cuda::CudaEncodedStaging>(context_, copy_streams_, layout);
  }
  std::unique_ptr<LowRankStaging> make_low_rank_staging(
      const LowRankStaging::Layout& layout) override {
    return std::make_unique<cuda::CudaLowRankStaging>(context_, copy_streams_, layout);
  }
  std::unique_ptr<Feed> make_feed(const ByteScale& scale) override {
    return std::make_unique<cuda::CudaFeed>(context_, scale);
  }
  std::vector<std::unique_ptr<Recording>> record(
      const std::function<void(const Cut& cut)>& work) override {
    struct Apart {  // a recording does not share its memory
      explicit Apart(CudaBackend& b) : backend(b) {
        if (!backend.has_recorded_) backend.memory().trim();
        backend.memory().set_apart(true);
        backend.recording_ = backend.has_recorded_ = true;
      }
      ~Apart() {
        backend.memory().set_apart(false);
        backend.recording_ = false;
      }
      CudaBackend& backend;
    } apart(*this);
    std::vector<std::unique_ptr<Recording>> recordings;
    cuda::Capture capture(context_.stream);
    work([&] { recordings.push_back(capture.cut()); });
    recordings.push_back(capture.end());
    return recordings;
  }
  void begin_step(const Random& random) override {
    cuda::set_u64(queue(), context_.step_key, random.key());
  }
  bool adds_in_parts() const override { return true; }

  using Backend::matmul;
  void matmul(std::span<const Matmul> products) override {
    for (const Matmul& product : products) products_.multiply(product);
  }
  void linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu_after,
              const Tensor& y) override {
    products_.linear(x, weight, bias, relu_after, y);
  }
  void linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy, bool rectified,
                       const LinearGradients& into) override {
    const bool both = into.weight.tensor.defined() && into.x.tensor.defined();
    if (both) {  // in parallel: a small product does not use the whole GPU
      forked_.record(stream());
      forked_.hold_back(side_.stream);
      side_products_.linear_weight_gradient(x, dy, into.weight, into.bias);
      joined_.record(side_.stream);
    } else if (into.weight.tensor.defined()) {
      products_.linear_weight_gradient(x, dy, into.weight, into.bias);
    } else if (into.bias.tensor.defined()) {
      sum_rows(dy, into.bias.tensor, into.bias.accumulate);
    }
    if (into.x.tensor.defined()) products_.linear_data_gradient(dy, weight, x, rectified, into.x);
    if (both) joined_.hold_back(stream());
  }
  void add_bias(const Tensor& bias, const Tensor& y) override {
    cuda::add_bias(queue(), type_of(y), bias.data<float>(), y.raw(), rows_of(y), y.size(-1));
  }
  void sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) override {
    cuda::sum_rows(queue(), type_of(x), x.raw(), sums.data<float>(), rows_of(x), x.size(-1),
                   accumulate);
  }
  void relu_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& masked,
                          const GradientInto& bias) override {
    cuda::relu_bias_gradient(queue(), type_of(y), y.raw(), dy.raw(), masked.raw(),
                             data_or_null(bias.tensor), rows_of(y), y.size(-1), bias.accumulate);
  }

  void conv2d(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
              bool relu_after, const Tensor& y) override {
    convolutions_.forward(o, x, filter, bias, relu_after, y);
  }
  void conv2d_data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter,
                            const Tensor& dx, bool accumulate) override {
    convolutions_.data_gradient(o, dy, filter, dx, accumulate);
  }
  void conv2d_filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                              const Tensor& dfilter, bool accumulate) override {
    convolutions_.filter_gradient(o, x, dy, dfilter, accumulate);
  }

  void max_pool(const Pool& pool, const Tensor& x, const Tensor& y,
                const Tensor& winners) override {
    cuda::max_pool(queue(), type_of(x), pool_shape(pool, x, y), x.raw(), y.raw(),
                   winners.data<std::uint8_t>());
  }
  void max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                         const Tensor& dx, bool accumulate) override {
    cuda::max_pool_gradient(queue(), type_of(dx), pool_shape(pool, dx, dy),
                            winners.data<std::uint8_t>(), dy.raw(), dx.raw(), accumulate);
  }
  void average_pool(const Pool& pool, const Tensor& x, const Tensor& y) override {
    cuda::average_pool(queue(), type_of(x), pool_shape(pool, x, y), x.raw(), y.raw());
  }
  void average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                             bool accumulate) override {
    cuda::average_pool_gradient(queue(), type_of(dx), pool_shape(pool, dx, dy), dy.raw(), dx.raw(),
                                accumulate);
  }
  void adaptive_average_pool(const Tensor& x, const Tensor& y) override {
    cuda::adaptive_average_pool(queue(), type_of(x), pool_shape({}, x, y), x.raw(), y.raw());
  }
  void adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                      bool accumulate) override {
    cuda::adaptive_average_pool_gradient(queue(), type_of(dx), pool_shape({}, dx, dy), dy.raw(),
                                         dx.raw(), accumulate);
  }
  void global_average_pool(const Tensor& x, const Tensor& y) override {
    cuda::global_average_pool(queue(), type_of(x), x.raw(), y.raw(), x.size(0),
                              x.size(1) * x.size(2), x.size(3));
  }
  void global_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate) override {
    cuda::global_average_pool_gradient(queue(), type_of(dx), dy.raw(), dx.raw(), dx.size(0),
                                       dx.size(1) * dx.size(2), dx.size(3), accumulate);
  }

  void batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                        const Tensor& inverse_deviation,
                        const RunningStatistics& running) override {
    cuda::batch_statistics(queue(), type_of(x), x.raw(), rows_of(x), x.size(-1),
                           {static_cast<float>(epsilon), mean.data<float>(),
                            inverse_deviation.data<float>(), data_or_null(running.mean),
                            data_or_null(running.variance), static_cast<float>(running.momentum)});
  }
  void inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) override {
    cuda::inverse_deviation(queue(), variance.data<float>(), static_cast<float>(epsilon),
                            result.data<float>(), variance.count());
  }
  // Stores one bit per element: whether y is above 0.
  Tensor channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                      const Tensor& y) override {
    Tensor positive;
    if (norm.after == ChannelNorm::After::add_relu)
      positive = Tensor::empty({(x.count() + 7) / 8}, Dtype::u8, x.device());
    cuda::channel_norm(queue(), type_of(x), parts(norm), x.raw(), raw_or_null(residual), y.raw(),
                       positive.defined() ? positive.data<std::uint8_t>() : nullptr, rows_of(x),
                       x.size(-1));
    return positive;
  }
  void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x, const Tensor& positive,
                             const Tensor& dy, const Tensor& more,
                             const ChannelNormGradients& into) override {
    cuda::channel_norm_gradient(
        queue(), type_of(x), parts(norm), x.raw(),
        positive.defined() ? positive.data<std::uint8_t>() : nullptr, dy.raw(), raw_or_null(more),
        {raw_or_null(into.x.tensor), into.x.accumulate, raw_or_null(into.residual.tensor),
         into.residual.accumulate, data_or_null(into.weight.tensor), into.weight.accumulate,
         data_or_null(into.bias.tensor), into.bias.accumulate},
        rows_of(x), x.size(-1));
  }

  void local_response_norm(const LocalResponseNorm& norm, const Tensor& x,
                           const Tensor& y) override {
    cuda::response_norm(queue(), type_of(x), parts(norm), x.raw(), y.raw(), rows_of(x), x.size(-1));
  }
  void local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x,
                                    const Tensor& dy, const Tensor& dx, bool accumulate) override {
    cuda::response_norm_gradient(queue(), type_of(x), parts(norm), x.raw(), dy.raw(), dx.raw(),
                                 rows_of(x), x.size(-1), accumulate);
  }

  void concat(std::span<const Tensor> parts, const Tensor& y) override {
    std::vector<cuda::Columns> columns;
    for (const Tensor& part : parts) columns.push_back({part.raw(), part.size(-1)});
    cuda::concat(queue(), type_of(y), columns, y.raw(), rows_of(y), y.size(-1));
  }
  void concat_gradient(const Tensor& dy, std::span<const ConcatPart> parts) override {
    std::vector<cuda::Columns> columns;
    for (const ConcatPart& part : parts)
      columns.push_back({raw_or_null(part.into.tensor), part.columns, part.into.accumulate});
    cuda::concat_gradient(queue(), type_of(dy), dy.raw(), columns, rows_of(dy), dy.size(-1));
  }

  void add(const Tensor& a, const Tensor& b, const Tensor& y) override {
    cuda::add(queue(), type_of(y), a.raw(), b.raw(), y.raw(), y.count());
  }
  void weighted_sum(double alpha, const Tensor& a, double beta, const Tensor& b,
                    const Tensor& y) override {
    cuda::weighted_sum(queue(), type_of(y), static_cast<float>(alpha), a.raw(),
                       static_cast<float>(beta), b.raw(), y.raw(), y.count());
  }
  void relu(const Tensor& x, const Tensor& y) override {
    cuda::relu(queue(), type_of(y), x.raw(), y.raw(), y.count());
  }
  void relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx,
                     bool accumulate) override {
    cuda::relu_gradient(queue(), type_of(y), y.raw(), dy.raw(), dx.raw(), y.count(), accumulate);
  }
  void dropout(const Tensor& x, double keep, const StepRandom& random, const Tensor& y,
               bool accumulate) override {
    cuda::dropout(queue(), type_of(y), {context_.step_key, random.stream, keep}, x.raw(), y.raw(),
                  y.count(), accumulate);
  }

  void softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                             double scale, const Tensor& probabilities,
                             const Tensor& loss) override {
    cuda::softmax_cross_entropy(queue(), type_of(logits), logits.raw(), labels.data<std::int32_t>(),
                                logits.size(0), logits.size(1), static_cast<float>(smoothing),
                                static_cast<float>(scale), probabilities.data<float>(),
                                loss.data<float>());
  }
  void softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                      double smoothing, double scale, const Tensor& dloss,
                                      const Tensor& dlogits, bool accumulate) override {
    cuda::softmax_cross_entropy_gradient(
        queue(), type_of(dlogits), probabilities.data<float>(), labels.data<std::int32_t>(),
        dlogits.size(0), dlogits.size(1), static_cast<float>(smoothing), static_cast<float>(scale),
        dloss.data<float>(), dlogits.raw(), accumulate);
  }
  std::int64_t count_correct(const Tensor& logits, const Tensor& labels) override {
    const Storage correct(logits.device(), sizeof(std::int64_t));
    auto* on_device = reinterpret_cast<std::int64_t*>(correct.data());
    cuda::count_correct(queue(), type_of(logits), logits.raw(), labels.data<std::int32_t>(),
                        logits.size(0), logits.size(1), on_device);
    std::int64_t result = 0;
    check(cudaMemcpyAsync(&result, on_device, sizeof result, cudaMemcpyDeviceToHost, stream()),
          "copying from the GPU");
    check(cudaStreamSynchronize(stream()), "counting correct answers");
    return result;
  }

  void sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum, const Tensor& value,
           const Tensor& low) override {
    cuda::sgd(queue(),
              {static_cast<float>(step.rate), static_cast<float>(step.momentum),
               static_cast<float>(step.weight_decay), step.nesterov, step.gradient_has_momentum},
              gradient.data<float>(), momentum.data<float>(), value.data<float>(), raw_or_null(low),
              value.count());
  }

  std::string describe_choices() const override {
    return convolutions_.describe() + products_.describe();
  }

 private:
  cudaStream_t stream() const { return context_.stream; }
  const cuda::Queue& queue() const { return context_.queue; }

  Context context_;
  cuda::Products products_;
  cuda::Convolutions convolutions_;
  Context side_;  // a second stream, for work in parallel
  cuda::Products side_products_;
  cuda::CopyStreams copy_streams_;
  cuda::CudaEvent forked_, joined_;
  std::shared_ptr<cuda::EventPool> events_ = std::make_shared<cuda::EventPool>();
  bool recording_ = false, has_recorded_ = false;
};

}  // namespace

// Streams share the GPU's hardware queues, eight per process by default. Work in a shared queue
// runs in the order in which it was queued, so a gradient would wait for computation. One worker
// has five streams, and one for each large message, and gets 16 queues; several workers get the
// maximum. More than needed would hurt, because all processes on a GPU share them. A value that the
// user has set is kept.
void expect_cuda_workers(int workers) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", workers > 1 ? "32" : "16", 0);
}

int cuda_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw UserError("--device cuda: no usable GPU ({}); use --device cpu",
                    status == cudaSuccess ? "there is none" : cudaGetErrorString(status));
  return count;
}

std::string cuda_versions() {
  int cuda = 0;
  check(cudaRuntimeGetVersion(&cuda), "asking for CUDA's version");
  const std::size_t dnn = cudnnGetVersion();
  return fmt::format("CUDA {}.{}, cuDNN {}.{}.{}", cuda / 1000, cuda % 1000 / 10, dnn / 10000,
                     dnn / 100 % 100, dnn % 100);
}

std::shared_ptr<Backend> cuda_backend(const CudaOptions& o) {
  const int count = cuda_device_count();
  if (o.index < 0 || o.index >= count)
    throw UserError("GPU {} does not exist: this machine has {}", o.index, count);
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, o.index),
        "asking what the GPU can do");
  if (major < 8)
    throw UserError("GPU {} has compute capability {}.x; Tandem needs 8.0 or newer", o.index,
                    major);
  return std::make_shared<CudaBackend>(o);
}

}  // namespace tandem
