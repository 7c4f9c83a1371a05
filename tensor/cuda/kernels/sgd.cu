// Every operation is rounded separately, in the CPU's order, so that CPU and GPU give the same
// bits.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

template <bool kNesterov, bool kGradientHasMomentum, bool kLow>
struct Sgd {
  float rate, mu, decay;
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
      const float gradient_here = loaded.gradient.at[k], d = __fmul_rn(decay, w);
      const float g = kGradientHasMomentum ? d : __fadd_rn(gradient_here, d);  // needs momentum
      const float v = __fadd_rn(__fmul_rn(mu, loaded.momentum.at[k]), g);
      const float with_momentum = kNesterov ? __fadd_rn(g, __fmul_rn(mu, v)) : v;
      const float direction =
          kGradientHasMomentum ? __fadd_rn(gradient_here, with_momentum) : with_momentum;
      momenta[k] = v;
      values[k] = __fsub_rn(w, __fmul_rn(rate, direction));
    }
    store_floats(momentum + i, momenta);
    store_floats(value + i, values);
    if constexpr (kLow) store_floats(low + i, values);
  }
};

}  // namespace

void sgd(const Queue& on, const SgdRates& rates, const float* gradient, float* momentum,
         float* value, void* low, std::int64_t count) {
  const auto run = [&]<bool kNesterov, bool kGradientHasMomentum, bool kLow>() {
    each<kWidestF32>(on, "sgd", count,
                     Sgd<kNesterov, kGradientHasMomentum, kLow>{
                         rates.rate, rates.momentum, rates.weight_decay, gradient, momentum, value,
                         static_cast<bf16*>(low)});
  };
  const auto with_low = [&]<bool kNesterov, bool kGradientHasMomentum>() {
    low ? run.template operator()<kNesterov, kGradientHasMomentum, true>()
        : run.template operator()<kNesterov, kGradientHasMomentum, false>();
  };
  if (rates.gradient_has_momentum)
    rates.nesterov ? with_low.template operator()<true, true>()
                   : with_low.template operator()<false, true>();
  else
    rates.nesterov ? with_low.template operator()<true, false>()
                   : with_low.template operator()<false, false>();
}

}  // namespace tandem::cuda
