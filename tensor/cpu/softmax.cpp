// The loss: softmax and cross-entropy, row by row; and the number of correct predictions.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

using kernels::put;

// One row of softmax; returns log Σ exp(logits), stable for large logits.
template <class T>
T softmax_row(const T* __restrict logits, T* __restrict probabilities, std::int64_t classes) {
  const T largest = *std::max_element(logits, logits + classes);
  T sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    probabilities[c] = std::exp(logits[c] - largest);
    sum += probabilities[c];
  }
  for (std::int64_t c = 0; c < classes; ++c) probabilities[c] /= sum;
  return largest + std::log(sum);
}

// Cross-entropy of one row against (1 - smoothing)·[c = label] + smoothing/classes.
template <class T>
double cross_entropy_row(const T* logits, T log_sum, std::int64_t label, std::int64_t classes,
                         double smoothing) {
  const double at_label = static_cast<double>(log_sum) - static_cast<double>(logits[label]);
  if (smoothing == 0) return at_label;
  double total = 0;
  for (std::int64_t c = 0; c < classes; ++c) total += static_cast<double>(logits[c]);
  const double everywhere = static_cast<double>(log_sum) - total / static_cast<double>(classes);
  return (1 - smoothing) * at_label + smoothing * everywhere;
}

template <bool kAccumulate, class T>
void cross_entropy_gradient_row(const T* __restrict probabilities, std::int64_t label,
                                std::int64_t classes, double smoothing, T scale,
                                T* __restrict dlogits) {
  const T everywhere = static_cast<T>(smoothing / static_cast<double>(classes));
  const T at_label = everywhere + static_cast<T>(1 - smoothing);
  for (std::int64_t c = 0; c < classes; ++c)
    put<kAccumulate>(dlogits[c], scale * (probabilities[c] - (c == label ? at_label : everywhere)));
}

std::int64_t checked_label(std::int32_t label, std::int64_t classes) {
  require(label >= 0 && label < classes, "label {} is not one of {} classes", label, classes);
  return label;
}

}  // namespace

void CpuBackend::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                                       double scale, const Tensor& probabilities,
                                       const Tensor& loss) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const auto* label = labels.data<std::int32_t>();
  const Tensor row_loss = Tensor::empty({rows}, Dtype::f64, logits.device());
  auto* losses = row_loss.data<double>();
  with_float_type(logits.dtype(), [&]<class T>() {
    threads_.run_ranges(
        rows, kernels::rows_per_tile(classes), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            const T* row = logits.data<T>() + r * classes;
            const T log_sum = softmax_row(row, probabilities.data<T>() + r * classes, classes);
            losses[r] = cross_entropy_row(row, log_sum, checked_label(label[r], classes), classes,
                                          smoothing);
          }
        });
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) total += losses[r];
    *loss.data<T>() = static_cast<T>(scale * total);
  });
}

void CpuBackend::softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                                double smoothing, double scale, const Tensor& dloss,
                                                const Tensor& dlogits, bool accumulate) {
  const std::int64_t rows = dlogits.size(0), classes = dlogits.size(1);
  const auto* label = labels.data<std::int32_t>();
  with_float_type(dlogits.dtype(), [&]<class T>() {
    const T row_scale = static_cast<T>(scale) * *dloss.data<T>();
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(
          rows, kernels::rows_per_tile(classes), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; ++r)
              cross_entropy_gradient_row<kAccumulate>(probabilities.data<T>() + r * classes,
                                                      label[r], classes, smoothing, row_scale,
                                                      dlogits.data<T>() + r * classes);
          });
    });
  });
}

std::int64_t CpuBackend::count_correct(const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const auto* label = labels.data<std::int32_t>();
  return with_float_type(logits.dtype(), [&]<class T>() {
    std::int64_t correct = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = logits.data<T>() + r * classes;
      correct += std::max_element(row, row + classes) - row == label[r];
    }
    return correct;
  });
}

}  // namespace tandem
