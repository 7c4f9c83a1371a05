// Initial values of parameters. The same seed gives the same numbers on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/random.h"
#include "tensor/shape.h"

namespace tandem {

// He et al. (2015): variance 2/fan_in, for layers followed by ReLU.
// Xavier (Glorot and Bengio, 2010): variance 2/(fan_in + fan_out).
enum class Init { zeros, he_uniform, he_normal, xavier_uniform, xavier_normal };

// `weight` is [out, …in…], as Linear and convolution filters are: its fans follow from its shape.
std::vector<float> initial_values(Init init, const Shape& weight, Random random);

}  // namespace tandem
