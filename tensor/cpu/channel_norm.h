// What the forward and the backward pass of batch normalisation share. Both work on x[…, c] with
// the channels innermost. Memory traffic determines their speed, so they make as few passes as the
// mathematics allows:
//
//   forward    1. statistics          reads x
//              2. y                   reads x (and the residual), writes y
//   backward   1. Σ dy', Σ dy'·(x-µ)  reads x, dy (and y; writes the residual's gradient)
//              2. dx                  reads x, dy (or the residual's gradient), writes dx
//
// where dy' is the gradient of the ReLU's input. Without a residual, backward recomputes the ReLU's
// mask from x with exactly forward's arithmetic, which is cheaper than reading y.
#pragma once

#include "tensor/backend.h"
#include "tensor/cpu/channel_rows.h"

namespace tandem {

using After = ChannelNorm::After;

// Calls f.template operator()<after>().
template <class F>
void with_after(After after, F&& f) {
  if (after == After::nothing)
    f.template operator()<After::nothing>();
  else if (after == After::relu)
    f.template operator()<After::relu>();
  else
    f.template operator()<After::add_relu>();
}

// The only definition of z: backward must reproduce forward's bits.
template <class T>
inline T normalized(T x, T mean, T scale, T bias) {
  return (x - mean) * scale + bias;
}

// The values per channel, each as wide as a row of ChannelRows.
//   z  = (x - mean)·scale + bias                      forward
//   dx = scale·dy' + slope·(x - mean) + offset        backward
template <class T>
struct Coefficients {
  Coefficients(const ChannelNorm& norm, const ChannelRows& rows, const Device& device)
      : memory(Tensor::empty({5, rows.width()}, DtypeOf<T>::value, device)) {
    T** pointers[] = {&mean, &scale, &bias, &slope, &offset};
    for (std::int64_t i = 0; i < 5; ++i) *pointers[i] = memory.data<T>() + i * rows.width();
    const T *m = norm.mean.data<T>(), *inverse = norm.inverse_deviation.data<T>(),
            *w = norm.weight.data<T>(), *b = norm.bias.data<T>();
    rows.spread(mean, [=](std::int64_t c) { return m[c]; });
    rows.spread(scale, [=](std::int64_t c) { return w[c] * inverse[c]; });
    rows.spread(bias, [=](std::int64_t c) { return b[c]; });
  }

  Tensor memory;
  T *mean, *scale, *bias;
  T *slope, *offset;  // set by backward
};

// A tensor that this form of the operation may lack. If it does, `other` stands in and is never
// read.
inline const Tensor& or_else(const Tensor& x, const Tensor& other) {
  return x.defined() ? x : other;
}

}  // namespace tandem
