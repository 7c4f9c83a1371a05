#include <algorithm>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

std::int64_t rows_of(const Tensor& y) { return y.size(-1) == 0 ? 0 : y.count() / y.size(-1); }

}  // namespace

void CpuBackend::concat(std::span<const Tensor> parts, const Tensor& y) {
  const std::int64_t columns = y.size(-1);
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(rows_of(y), kernels::rows_per_tile(columns),
                        [&](std::int64_t begin, std::int64_t end) {
                          T* to = y.data<T>() + begin * columns;
                          for (std::int64_t row = begin; row < end; ++row)
                            for (const Tensor& part : parts) {
                              const std::int64_t count = part.size(-1);
                              to = std::copy_n(part.data<T>() + row * count, count, to);
                            }
                        });
  });
}

void CpuBackend::concat_gradient(const Tensor& dy, std::span<const ConcatPart> parts) {
  const std::int64_t columns = dy.size(-1);
  with_float_type(dy.dtype(), [&]<class T>() {
    threads_.run_ranges(rows_of(dy), kernels::rows_per_tile(columns),
                        [&](std::int64_t begin, std::int64_t end) {
                          const T* from = dy.data<T>() + begin * columns;
                          for (std::int64_t row = begin; row < end; ++row)
                            for (const ConcatPart& part : parts) {
                              const GradientInto& into = part.into;
                              if (into.tensor.defined()) {
                                T* to = into.tensor.data<T>() + row * part.columns;
                                if (into.accumulate)
                                  kernels::add(to, from, to, part.columns);
                                else
                                  std::copy_n(from, part.columns, to);
                              }
                              from += part.columns;
                            }
                        });
  });
}

}  // namespace tandem
