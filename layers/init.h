// Initial values of parameters. The same seed gives the same numbers on every platform.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "tensor/shape.h"

namespace tandem {

// He (He et al., 2015): variance 2/fan_in, for layers followed by ReLU; he_normal_fan_out:
// 2/fan_out, which preserves the variance of gradients instead, as in torchvision's residual nets.
// Xavier (Glorot and Bengio, 2010): variance 2/(fan_in + fan_out). LeCun: variance 1/fan_in, half
// of He's. AlexNet uses it, because its max pools increase the variance. (PyTorch's default for its
// layers is smaller still: 1/(3 fan_in).)
enum class Init {
  zeros,
  he_uniform,
  he_normal,
  he_normal_fan_out,
  xavier_uniform,
  xavier_normal,
  lecun_uniform
};

// `weight` is [out, …in…], as in Linear and in convolution filters; its shape determines the fans.
std::vector<float> initial_values(Init init, const Shape& weight, Random random);
// The same, computed when the result is called.
inline std::function<std::vector<float>()> later(Init init, const Shape& weight,
                                                 const Random& random) {
  return [=] { return initial_values(init, weight, random); };
}

}  // namespace tandem
