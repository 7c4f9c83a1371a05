// Convolutions by cuDNN's graph API, or as matrix products where that is faster. For each new
// shape, the fastest engine is measured once and remembered.
#pragma once

#include <memory>
#include <string>

#include "tensor/backend.h"
#include "tensor/cuda/blas/products.h"
#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

// One per worker. All tensors are f32 or all are bf16, except bias and dfilter, which are always
// f32.
class Convolutions {
 public:
  Convolutions(Context& context, Products& products);  // of the same context
  ~Convolutions();

  // y = x * filter, plus bias if it is defined, then ReLU if `relu`. With y in bf16 the bias may be
  // rounded to bf16 first.
  void forward(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
               bool relu, const Tensor& y);
  void data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter, const Tensor& dx,
                     bool accumulate);
  void filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                       const Tensor& dfilter, bool accumulate);

  // A line for every problem met so far, with the chosen engine and its time.
  std::string describe() const;

 private:
  struct Plans;
  Context& context_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace tandem::cuda
