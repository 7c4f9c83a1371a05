#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace tandem {

// Residual nets (He et al., 2016) with torchvision's names: conv1, bn1, layer1.0.conv1, …,
// layer2.0.downsample.0, …, fc. A shortcut that changes the size is a 1×1 convolution with batch
// norm. A bottleneck halves the image in its 3×3 convolution ("v1.5"), as in torchvision.

// 18, 34, 50, 101 or 152 layers, for images of 224 pixels; at least 32, else UserError.
std::unique_ptr<Layer> resnet(int depth, const Shape& image, std::int64_t classes,
                              std::uint64_t seed);

// 20, 32, 44, 56 or 110 layers, for images of 32 pixels; at least 8 (section 4.2 of the paper):
// three stages of 16, 32 and 64 filters.
std::unique_ptr<Layer> cifar_resnet(int depth, const Shape& image, std::int64_t classes,
                                    std::uint64_t seed);

const std::vector<int>& resnet_depths();
const std::vector<int>& cifar_resnet_depths();

}  // namespace tandem
