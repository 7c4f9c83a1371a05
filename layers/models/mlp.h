#pragma once

#include <cstdint>
#include <memory>

#include "layers/layer.h"

namespace tandem {

// MNIST-MLP of the Pipe-SGD paper: 784-500-500-10 with ReLU, for images [n, 28, 28, 1]. Parameters
// are named as in torch.nn.Sequential(Linear, ReLU, Linear, ReLU, Linear).
std::unique_ptr<Layer> mnist_mlp(std::uint64_t seed);

}  // namespace tandem
