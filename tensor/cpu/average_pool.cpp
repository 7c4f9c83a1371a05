#include <algorithm>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"
#include "tensor/cpu/pooling.h"

namespace tandem {
namespace {

std::int64_t rows_of(std::int64_t elements) {
  return std::max<std::int64_t>(1, 16 * 1024 / std::max<std::int64_t>(1, elements));
}

// Pixels by which a window at `position` divides along one side.
std::int64_t pixels(const Pool& pool, std::int64_t position, std::int64_t size) {
  if (!pool.count_padding) {
    const PoolWindow window(pool, position, size);
    return window.end - window.begin;
  }
  const std::int64_t start = position * pool.stride - pool.padding;
  return std::min(start + pool.window, size + pool.padding) - start;
}

// The windows [begin, end) along one side that cover `pixel`.
struct Seeing {
  Seeing(const Pool& pool, std::int64_t pixel, std::int64_t positions)
      : begin(pixel + pool.padding < pool.window
                  ? 0
                  : (pixel + pool.padding - pool.window) / pool.stride + 1),
        end(std::min((pixel + pool.padding) / pool.stride + 1, positions)) {}
  std::int64_t begin, end;
};

// The pixels of window `i` of `windows` over `size` pixels. With `windows` and `size` exchanged:
// the windows that cover pixel i.
struct Share {
  Share(std::int64_t i, std::int64_t windows, std::int64_t size)
      : begin(i * size / windows), end(((i + 1) * size + windows - 1) / windows) {}
  std::int64_t count() const { return end - begin; }
  std::int64_t begin, end;
};

template <class T>
void scale(T factor, T* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] *= factor;
}

template <bool kAccumulate, class T>
void put_scaled(T factor, const T* __restrict x, T* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) kernels::put<kAccumulate>(y[i], x[i] * factor);
}

}  // namespace

void CpuBackend::average_pool(const Pool& pool, const Tensor& x, const Tensor& y) {
  const std::int64_t h = x.size(1), w = x.size(2), c = x.size(3), p = y.size(1), q = y.size(2);
  with_float_type(x.dtype(), [&]<class T>() {
    threads_.run_ranges(y.size(0) * p, rows_of(q * c), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const PoolWindow rows(pool, row % p, h);
        for (std::int64_t column = 0; column < q; ++column) {
          const PoolWindow columns(pool, column, w);
          T* out = y.data<T>() + (row * q + column) * c;
          std::fill(out, out + c, T{0});
          for (std::int64_t r = rows.begin; r < rows.end; ++r)
            kernels::add_rows(x.data<T>() + ((row / p * h + r) * w + columns.begin) * c, out,
                              columns.end - columns.begin, c);
          scale(T{1} / static_cast<T>(pixels(pool, row % p, h) * pixels(pool, column, w)), out, c);
        }
      }
    });
  });
}

// dx = Σ dy / pixels over the windows that cover a pixel, in order.
void CpuBackend::average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                                       bool accumulate) {
  const std::int64_t h = dx.size(1), w = dx.size(2), c = dx.size(3), p = dy.size(1), q = dy.size(2);
  with_float_type(dy.dtype(), [&]<class T>() {
    threads_.run_ranges(dx.size(0) * h, rows_of(w * c), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Seeing rows(pool, row % h, p);
        for (std::int64_t column = 0; column < w; ++column) {
          const Seeing columns(pool, column, q);
          T* out = dx.data<T>() + (row * w + column) * c;
          bool add = accumulate;
          for (std::int64_t r = rows.begin; r < rows.end; ++r)
            for (std::int64_t s = columns.begin; s < columns.end; ++s) {
              const T* in = dy.data<T>() + ((row / h * p + r) * q + s) * c;
              const T share = T{1} / static_cast<T>(pixels(pool, r, h) * pixels(pool, s, w));
              kernels::with_accumulate(
                  add, [&]<bool kAccumulate>() { put_scaled<kAccumulate>(share, in, out, c); });
              add = true;
            }
          if (!add) std::fill(out, out + c, T{0});  // no window covers it
        }
      }
    });
  });
}

void CpuBackend::adaptive_average_pool(const Tensor& x, const Tensor& y) {
  const std::int64_t h = x.size(1), w = x.size(2), c = x.size(3), p = y.size(1), q = y.size(2);
  with_float_type(x.dtype(), [&]<class T>() {
    threads_.run_ranges(y.size(0) * p, rows_of(q * c), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Share rows(row % p, p, h);
        for (std::int64_t column = 0; column < q; ++column) {
          const Share columns(column, q, w);
          T* out = y.data<T>() + (row * q + column) * c;
          std::fill(out, out + c, T{0});
          for (std::int64_t r = rows.begin; r < rows.end; ++r)
            kernels::add_rows(x.data<T>() + ((row / p * h + r) * w + columns.begin) * c, out,
                              columns.count(), c);
          scale(T{1} / static_cast<T>(rows.count() * columns.count()), out, c);
        }
      }
    });
  });
}

void CpuBackend::adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                                bool accumulate) {
  const std::int64_t h = dx.size(1), w = dx.size(2), c = dx.size(3), p = dy.size(1), q = dy.size(2);
  with_float_type(dy.dtype(), [&]<class T>() {
    threads_.run_ranges(dx.size(0) * h, rows_of(w * c), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Share rows(row % h, h, p);
        for (std::int64_t column = 0; column < w; ++column) {
          const Share columns(column, w, q);
          T* out = dx.data<T>() + (row * w + column) * c;
          bool add = accumulate;
          for (std::int64_t r = rows.begin; r < rows.end; ++r)
            for (std::int64_t s = columns.begin; s < columns.end; ++s) {
              const T* in = dy.data<T>() + ((row / h * p + r) * q + s) * c;
              const T share =
                  T{1} / static_cast<T>(Share(r, p, h).count() * Share(s, q, w).count());
              kernels::with_accumulate(
                  add, [&]<bool kAccumulate>() { put_scaled<kAccumulate>(share, in, out, c); });
              add = true;
            }
        }
      }
    });
  });
}

void CpuBackend::global_average_pool(const Tensor& x, const Tensor& y) {
  const std::int64_t pixels = x.size(1) * x.size(2), c = x.size(3);
  with_float_type(x.dtype(), [&]<class T>() {
    threads_.run_ranges(x.size(0), rows_of(pixels * c), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        T* out = y.data<T>() + n * c;
        std::fill(out, out + c, T{0});
        kernels::add_rows(x.data<T>() + n * pixels * c, out, pixels, c);
        scale(T{1} / static_cast<T>(pixels), out, c);
      }
    });
  });
}

void CpuBackend::global_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate) {
  const std::int64_t pixels = dx.size(1) * dx.size(2), c = dx.size(3);
  with_float_type(dy.dtype(), [&]<class T>() {
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(dx.size(0) * pixels, rows_of(c),
                          [&](std::int64_t begin, std::int64_t end) {
                            const T share = T{1} / static_cast<T>(pixels);
                            for (std::int64_t i = begin; i < end; ++i)
                              put_scaled<kAccumulate>(share, dy.data<T>() + i / pixels * c,
                                                      dx.data<T>() + i * c, c);
                          });
    });
  });
}

}  // namespace tandem
