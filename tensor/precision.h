// The kinds of device, and the precision that a device computes in.
#pragma once

#include "base/names.h"
#include "tensor/dtype.h"

namespace tandem {

enum class DeviceKind { cpu, cuda };

template <>
struct NamesOf<DeviceKind> {
  static constexpr const char* names[] = {"cpu", "cuda"};
};

enum class Precision {
  fp32,
  tf32,  // f32 in memory; products round their factors to 10 bits of mantissa
  bf16,  // activations and the weights of products are bf16; master weights, gradients of weights,
         // statistics and all sums are f32, but cuDNN may round a filter's gradient to bf16 before
};

template <>
struct NamesOf<Precision> {
  static constexpr const char* names[] = {"fp32", "tf32", "bf16"};
};

inline Dtype activation_dtype(Precision precision) {
  return precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32;
}

}  // namespace tandem
