#pragma once

#include <cstdint>
#include <memory>

#include "layers/sequential.h"

namespace tandem {

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

}  // namespace tandem
