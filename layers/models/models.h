// The models of the papers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/sequential.h"

namespace tandem {

// MNIST-MLP of the Pipe-SGD paper: 784-500-500-10 with ReLU, for images [n, 28, 28, 1]. Parameters
// are named as in torch.nn.Sequential(Linear, ReLU, Linear, ReLU, Linear).
std::unique_ptr<Layer> mnist_mlp(std::uint64_t seed);

// The CIFAR100-CNN of the Pipe-SGD paper, after Caffe's cifar10_quick: three convolutions of 5×5
// (32, 32 and 64 filters), each with ReLU and a pool that halves the image, and two fully connected
// layers. Images need at least 8 pixels in height and width; otherwise UserError. Parameters are
// named as torch.nn.Sequential would name them: 0, 3, 6, 10 and 12.
std::unique_ptr<Layer> cifar_cnn(const Shape& image, std::int64_t classes, std::uint64_t seed);

// CIFAR100-Convex: the same net with only its last layer trained, so that the loss is convex. The
// layers before it keep the weights that the seed or a file of a trained net gives them.
class CifarConvex : public Layer {
 public:
  static constexpr std::int64_t kFeatures = 64;

  CifarConvex(const Shape& image, std::int64_t classes, std::uint64_t seed);

  // Takes images [n, h, w, c], or the result of features() for them, [n, 1, 1, kFeatures]. The
  // fixed layers never change, so a program may run them once and train on their outputs.
  Var forward(Tape& tape, const Var& x) override;
  Var features(Tape& tape, const Var& images) { return fixed_.forward(tape, images); }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  Sequential fixed_, last_;
};

// The two versions of AlexNet, for images of 224 pixels. Other sizes, from 63 pixels on, are
// averaged after the convolutions to the 6 x 6 pixels that 224 give, as torchvision does, so the
// same weights serve for all. Smaller images are a UserError. Parameters are named
// features.0.weight … classifier.6.bias.

// "One weird trick" (Krizhevsky, 2014): 64-192-384-256-256 filters, no groups, no response
// normalisation; what torchvision calls alexnet. 61,100,840 parameters for 1,000 classes.
std::unique_ptr<Layer> alexnet_owt(const Shape& image, std::int64_t classes, std::uint64_t seed);

// As it won in 2012 (Krizhevsky, Sutskever and Hinton): 96-256-384-384-256 filters, with two groups
// in the second, fourth and fifth layer, because the net was spread over two GPUs, and local
// response normalisation after the first two. 60,965,224 parameters for 1,000 classes.
std::unique_ptr<Layer> alexnet_classic(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed);

// VGG (Simonyan and Zisserman, 2015): 3×3 convolutions in five stages of 64, 128, 256, 512 and 512
// filters, each ended by a max pool. Images need at least 32 pixels; otherwise UserError.
struct Vgg {
  int depth = 16;              // 11, 13, 16 or 19 layers with weights
  bool batch_norm = false;     // after every convolution; the paper has none
  std::int64_t width = 64;     // filters of the first stage
  std::int64_t hidden = 4096;  // outputs of each hidden linear layer
};

// For images of 224 pixels, with torchvision's names: features.0.weight … classifier.6.bias. Other
// sizes are averaged to 7 x 7 pixels after the convolutions, as torchvision does.
std::unique_ptr<Layer> vgg(const Vgg& net, const Shape& image, std::int64_t classes,
                           std::uint64_t seed);

// The usual form for CIFAR: the same convolutions leave one pixel of 512 channels, and one linear
// layer (classifier.weight and classifier.bias) follows.
std::unique_ptr<Layer> cifar_vgg(const Vgg& net, const Shape& image, std::int64_t classes,
                                 std::uint64_t seed);

const std::vector<int>& vgg_depths();

// GoogLeNet (Szegedy et al., 2015) as torchvision has it, with its names, for images of 224 pixels;
// at least 15, else UserError. The paper's net has 5×5 convolutions where torchvision's has a
// second 3×3, a bias where that has batch norm, and local response normalisation. loss() adds those
// of two auxiliary classifiers, each times 0.3; forward() leaves them out. 13,004,888 parameters
// for 1,000 classes, 6,379,984 of them in the auxiliary classifiers.
std::unique_ptr<Layer> googlenet(const Shape& image, std::int64_t classes, std::uint64_t seed);

// Inception-v3 (Szegedy et al., 2016) as torchvision has it, with its names, for images of 299
// pixels; at least 75, else UserError. loss() adds that of an auxiliary classifier times 0.4;
// forward() leaves it out. Images below 299 pixels are too small for torchvision's auxiliary
// classifier: its input is then averaged to as many pixels as 299 give. 27,161,264 parameters for
// 1,000 classes, 3,326,696 of them in the auxiliary classifier. Every layer has a `narrow`th of its
// filters, a divisor of 16: for quick tests.
std::unique_ptr<Layer> inception_v3(const Shape& image, std::int64_t classes, std::uint64_t seed,
                                    std::int64_t narrow = 1);

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
