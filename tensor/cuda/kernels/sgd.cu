// Every operation is rounded separately, in the CPU's order, so that CPU and GPU give the same
// bits.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

template <bool kNesterov, bool kLow>
struct Sgd {
  float rate, mu, decay;
  bool gradient_has_momentum;
  const float* gradient;
  float *momentum, *value;
  bf16* low;

  template <int N>
  struct Operands {
    Vector<float, N> gradient, momentum, value;
  };
  template <int N>
  __device__ Operands<N> load(std::int64_t i) const {
    return {cuda::load<N>(gradient + i), cuda::load<N>(momentum + i), cuda::load<N>(value + i)};
  }
  template <int N>
  __device__ void put(std::int64_t i, const Operands<N>& loaded) const {
    float momenta[N], values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float w = loaded.value.at[k];
      const float given = loaded.gradient.at[k], d = __fmul_rn(decay, w);
      const float g = gradient_has_momentum ? d : __fadd_rn(given, d);  // what needs momentum
      const float v = __fadd_rn(__fmul_rn(mu, loaded.momentum.at[k]), g);
      const float direction = kNesterov ? __fadd_rn(g, __fmul_rn(mu, v)) : v;
      momenta[k] = v;
      values[k] = __fsub_rn(
          w, __fmul_rn(rate, gradient_has_momentum ? __fadd_rn(given, direction) : direction));
    }
    store_floats(momentum + i, momenta);
    store_floats(value + i, values);
    if constexpr (kLow) store_floats(low + i, values);
  }
};

}  // namespace

void sgd(const Queue& on, const SgdRates& rates, const float* gradient, float* momentum,
         float* value, void* low, std::int64_t count) {
  const auto run = [&]<bool kNesterov, bool kLow>() {
    each<kWidestF32>(on, "sgd", count,
                     Sgd<kNesterov, kLow>{rates.rate, rates.momentum, rates.weight_decay,
                                          rates.gradient_has_momentum, gradient, momentum, value,
                                          static_cast<bf16*>(low)});
  };
  if (rates.nesterov)
    low ? run.operator()<true, true>() : run.operator()<true, false>();
  else
    low ? run.operator()<false, true>() : run.operator()<false, false>();
}

}  // namespace tandem::cuda
