// Element types. Training is f32; f64 exists so that gradients can be checked by central
// differences; bf16 is for activations on a GPU; u8 and i32 are images and labels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace tandem {

enum class Dtype : std::uint8_t { f32, f64, bf16, i32, u8 };

constexpr std::size_t bytes_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
      return 4;
    case Dtype::bf16:
      return 2;
    case Dtype::u8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "f64";
    case Dtype::f32:
      return "f32";
    case Dtype::i32:
      return "i32";
    case Dtype::bf16:
      return "bf16";
    case Dtype::u8:
      return "u8";
  }
  return "?";
}

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};

// Calls f.template operator()<T>() with the C++ type of a floating dtype that the CPU computes in.
template <class F>
decltype(auto) with_float_type(Dtype dtype, F&& f) {
  if (dtype == Dtype::f32) return f.template operator()<float>();
  require(dtype == Dtype::f64, "this operation needs f32 or f64, not {}", name_of(dtype));
  return f.template operator()<double>();
}

}  // namespace tandem
