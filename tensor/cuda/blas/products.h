// Matrix products by cuBLASLt, with bias, ReLU and the gradient of the bias in the epilogue. For
// each new shape, the fastest algorithm is measured once and remembered.
#pragma once

#include <memory>
#include <string>

#include "tensor/backend.h"
#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

// One per worker. Both factors are f32 or both bf16. The result's tensor is f32 or bf16. The bias
// and its gradient are f32.
class Products {
 public:
  explicit Products(Context& context);
  ~Products();

  void multiply(const Matmul& product);

  // y[n, out] = x[n, in] · weight[out, in]ᵀ + bias[out], then ReLU if `relu`.
  void linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu,
              const Tensor& y);
  // dweight = dyᵀ·x and dbias = Σ_n dy, in one product if possible. Either may be undefined.
  void linear_weight_gradient(const Tensor& x, const Tensor& dy, const GradientInto& weight,
                              const GradientInto& bias);
  // dx = dy·weight; with `rectified`, 0 where x is not above 0.
  void linear_data_gradient(const Tensor& dy, const Tensor& weight, const Tensor& x, bool rectified,
                            const GradientInto& dx);

  // A line per product met so far, with the algorithm and its measured time.
  std::string describe() const;

 private:
  struct Plans;
  Context& context_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace tandem::cuda
