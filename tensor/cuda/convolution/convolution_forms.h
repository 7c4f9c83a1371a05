// Computes a convolution in one of its forms.
#pragma once

#include <cstddef>

#include "base/function_ref.h"
#include "tensor/cuda/blas/products.h"
#include "tensor/cuda/convolution/convolution_call.h"

namespace tandem::cuda {

// For forms that are not unrolled. Brings the operands into the form, calls `compute` for
// graph_of(call, form) and brings the result into the call's.
void execute(const Context& context, const ConvolutionCall& call, const ConvolutionForm& form,
             FunctionRef<void(const dnn::Operands&)> compute);

// For an unrolled form. The windows are written, and multiplied, for some images after the others:
// those whose windows take `most_bytes`, but for one image at least.
void execute_unrolled(const Context& context, Products& products, const ConvolutionCall& call,
                      const ConvolutionForm& form, std::size_t most_bytes = std::size_t{256} << 20);

}  // namespace tandem::cuda
