// Convolutions of 3×3 and 5×5 filters at stride 1 with fewer multiplications (Winograd; Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
//
// Images are cut into overlapping tiles of 6×6 pixels, each of which gives m×m outputs: m = 4 for
// 3×3 filters and m = 2 for 5×5. With the tile d, the filter g and the outputs y,
//
//     y = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A
//
// As ⊙ works on each of the 36 positions separately, the sum over channels becomes 36 matrix
// products [tiles × channels] · [channels × filters]. This needs 36 multiplications for m² outputs
// instead of m²·r²: a quarter for 3×3 and 36% for 5×5. The gradients are the transposed maps:
//
//     dg = Gᵀ [ (A dy Aᵀ) ⊙ (Bᵀ d B) ] G,   and dx is a convolution of dy with the rotated filters.
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem::winograd {

// Whether Winograd's algorithm can do this convolution, and faster than windows.
bool wins(const Convolution& convolution, const Shape& x, const Shape& filter);

void forward(const Convolution& convolution, const Tensor& x, const Tensor& filter,
             const Tensor& bias, const Tensor& y, ThreadPool& threads);
void data_gradient(const Convolution& convolution, const Tensor& dy, const Tensor& filter,
                   const Tensor& dx, bool accumulate, ThreadPool& threads);
void filter_gradient(const Convolution& convolution, const Tensor& x, const Tensor& dy,
                     const Tensor& dfilter, bool accumulate, ThreadPool& threads);

}  // namespace tandem::winograd
