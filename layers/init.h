// Initial values of parameters. The same seed gives the same numbers on every platform.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "tensor/shape.h"

namespace tandem {

// He et al. (2015): variance 2/fan_in, for layers followed by ReLU; or 2/fan_out, which keeps the
// gradients' variance instead and is what torchvision's residual nets begin with.
// Xavier (Glorot and Bengio, 2010): variance 2/(fan_in + fan_out).
// PyTorch's layers begin with a variance of 1/(3 fan_in), a sixth of He's: what AlexNet needs,
// whose pools of maxima let everything grow.
enum class Init {
  zeros,
  he_uniform,
  he_normal,
  he_normal_fan_out,
  xavier_uniform,
  xavier_normal,
  lecun_uniform
};

// `weight` is [out, …in…], as Linear and convolution filters are: its fans follow from its shape.
std::vector<float> initial_values(Init init, const Shape& weight, Random random);
// The same, made when it is called for.
inline std::function<std::vector<float>()> later(Init init, const Shape& weight,
                                                 const Random& random) {
  return [=] { return initial_values(init, weight, random); };
}

}  // namespace tandem
