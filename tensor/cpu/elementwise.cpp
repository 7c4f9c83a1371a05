// Element-wise operations, and SGD's update.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

using kernels::is_positive;
using kernels::kTileElements;
using kernels::put;
using kernels::relu_of;

template <class T>  // y may be a or b
void add_weighted(T alpha, const T* a, T beta, const T* b, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = alpha * a[i] + beta * b[i];
}

template <class T>
void relu_all(const T* __restrict x, T* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu_of(x[i]);
}
template <class T>
void relu_all(T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu_of(y[i]);
}

template <bool kAccumulate, class T>
void relu_gradient_of(const T* __restrict y, const T* __restrict dy, T* __restrict dx,
                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = dy[i];  // loaded always: a conditional load would not be vectorised
    put<kAccumulate>(dx[i], is_positive(y[i]) ? g : T{0});
  }
}
template <class T>
void relu_gradient_of(const T* __restrict y, T* __restrict dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = is_positive(y[i]) ? dx[i] : T{0};
}

// Elements [begin, end), `begin` even: the two halves of a random number decide on two neighbours.
template <bool kAccumulate, class T>
void dropout_range(const T* __restrict x, double keep, const Random& random, T* __restrict y,
                   std::int64_t begin, std::int64_t end) {
  const auto threshold = static_cast<std::uint64_t>(keep * 0x1p32);
  const T scales[2] = {0, static_cast<T>(1 / keep)};  // a table: a branch would be mispredicted
  for (std::int64_t i = begin; i < end; i += 2) {
    const std::uint64_t bits = random.bits_at(static_cast<std::uint64_t>(i / 2));
    put<kAccumulate>(y[i], x[i] * scales[(bits >> 32) < threshold]);
    if (i + 1 < end) put<kAccumulate>(y[i + 1], x[i + 1] * scales[(bits & 0xffffffff) < threshold]);
  }
}

template <bool kNesterov, class T>
void sgd_step(T rate, T mu, T decay, bool gradient_has_momentum, const T* __restrict gradient,
              T* __restrict momentum, T* __restrict value, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T d = decay * value[i];
    const T g = gradient_has_momentum ? d : gradient[i] + d;  // what needs momentum
    const T v = mu * momentum[i] + g;
    const T direction = kNesterov ? g + mu * v : v;
    momentum[i] = v;
    value[i] -= rate * (gradient_has_momentum ? gradient[i] + direction : direction);
  }
}

}  // namespace

void CpuBackend::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
      kernels::add(a.data<T>() + begin, b.data<T>() + begin, y.data<T>() + begin, end - begin);
    });
  });
}

void CpuBackend::weighted_sum(double alpha, const Tensor& a, double beta, const Tensor& b,
                              const Tensor& y) {
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
      add_weighted(static_cast<T>(alpha), a.data<T>() + begin, static_cast<T>(beta),
                   b.data<T>() + begin, y.data<T>() + begin, end - begin);
    });
  });
}

void CpuBackend::relu(const Tensor& x, const Tensor& y) {
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
      if (x.raw() == y.raw())
        relu_all(y.data<T>() + begin, end - begin);
      else
        relu_all(x.data<T>() + begin, y.data<T>() + begin, end - begin);
    });
  });
}

void CpuBackend::relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx,
                               bool accumulate) {
  with_float_type(y.dtype(), [&]<class T>() {
    if (dx.raw() == dy.raw()) {
      threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
        relu_gradient_of(y.data<T>() + begin, dx.data<T>() + begin, end - begin);
      });
      return;
    }
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
        relu_gradient_of<kAccumulate>(y.data<T>() + begin, dy.data<T>() + begin,
                                      dx.data<T>() + begin, end - begin);
      });
    });
  });
}

void CpuBackend::dropout(const Tensor& x, double keep, const StepRandom& step, const Tensor& y,
                         bool accumulate) {
  const Random random = step.random();
  with_float_type(y.dtype(), [&]<class T>() {
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(y.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
        dropout_range<kAccumulate>(x.data<T>(), keep, random, y.data<T>(), begin, end);
      });
    });
  });
}

void CpuBackend::sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum,
                     const Tensor& value, const Tensor& low) {
  require(!low.defined(), "the CPU keeps no bf16 weights");
  with_float_type(value.dtype(), [&]<class T>() {
    const T rate = static_cast<T>(step.rate), mu = static_cast<T>(step.momentum),
            decay = static_cast<T>(step.weight_decay);
    threads_.run_ranges(value.count(), kTileElements, [&](std::int64_t begin, std::int64_t end) {
      const auto update = step.nesterov ? sgd_step<true, T> : sgd_step<false, T>;
      update(rate, mu, decay, step.gradient_has_momentum, gradient.data<T>() + begin,
             momentum.data<T>() + begin, value.data<T>() + begin, end - begin);
    });
  });
}

}  // namespace tandem
