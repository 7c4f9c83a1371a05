// Computes a convolution in one of its forms.
#pragma once

#include <cstddef>

#include "base/function_ref.h"
#include "tensor/cuda/blas/products.h"
#include "tensor/cuda/convolution/convolution_call.h"

namespace tandem::cuda {

// For forms that are not unrolled. Converts the operands to the form, calls `compute` with the
// operands of graph_of(call, form), and converts the result back.
void execute(const Context& context, const ConvolutionCall& call, const ConvolutionForm& form,
             FunctionRef<void(const dnn::Operands&)> compute);

// For an unrolled form. Works through the batch in chunks whose windows fit into `most_bytes`, at
// least one image each.
void execute_unrolled(const Context& context, Products& products, const ConvolutionCall& call,
                      const ConvolutionForm& form, std::size_t most_bytes = std::size_t{256} << 20);

}  // namespace tandem::cuda
