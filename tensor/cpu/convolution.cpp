#include "tensor/cpu/convolution.h"

namespace tandem {
namespace {

// Calls f(x index, filter index, y index) for every product of the convolution.
template <class F>
void each_product(const Convolution& o, const Shape& x, const Shape& filter, const Shape& y,
                  F&& f) {
  const std::int64_t group_k = filter[0] / o.groups;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t p = 0; p < y[1]; ++p)
      for (std::int64_t q = 0; q < y[2]; ++q)
        for (std::int64_t r = 0; r < filter[1]; ++r)
          for (std::int64_t s = 0; s < filter[2]; ++s) {
            const std::int64_t h = p * o.stride + r * o.dilation - o.padding;
            const std::int64_t w = q * o.stride + s * o.dilation - o.padding;
            if (h < 0 || h >= x[1] || w < 0 || w >= x[2]) continue;
            for (std::int64_t k = 0; k < y[3]; ++k)
              for (std::int64_t c = 0; c < filter[3]; ++c)
                f(((n * x[1] + h) * x[2] + w) * x[3] + k / group_k * filter[3] + c,
                  ((k * filter[1] + r) * filter[2] + s) * filter[3] + c,
                  ((n * y[1] + p) * y[2] + q) * y[3] + k);
          }
}

}  // namespace

void conv2d(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
            const Tensor& y, ThreadPool&) {
  with_float_type(y.dtype(), [&]<class T>() {
    T *px = x.data<T>(), *pf = filter.data<T>(), *py = y.data<T>();
    for (std::int64_t i = 0; i < y.count(); ++i)
      py[i] = bias.defined() ? bias.data<T>()[i % y.size(3)] : 0;
    each_product(o, x.shape(), filter.shape(), y.shape(),
                 [&](auto i, auto j, auto l) { py[l] += px[i] * pf[j]; });
  });
}

void conv2d_data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter,
                          const Tensor& dx, bool accumulate, ThreadPool&) {
  if (!accumulate) dx.backend().fill_zero(dx);
  with_float_type(dy.dtype(), [&]<class T>() {
    T *px = dx.data<T>(), *pf = filter.data<T>(), *py = dy.data<T>();
    each_product(o, dx.shape(), filter.shape(), dy.shape(),
                 [&](auto i, auto j, auto l) { px[i] += py[l] * pf[j]; });
  });
}

void conv2d_filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                            const Tensor& dfilter, bool accumulate, ThreadPool&) {
  if (!accumulate) dfilter.backend().fill_zero(dfilter);
  with_float_type(dy.dtype(), [&]<class T>() {
    T *px = x.data<T>(), *pf = dfilter.data<T>(), *py = dy.data<T>();
    each_product(o, x.shape(), dfilter.shape(), dy.shape(),
                 [&](auto i, auto j, auto l) { pf[j] += px[i] * py[l]; });
  });
}

}  // namespace tandem
