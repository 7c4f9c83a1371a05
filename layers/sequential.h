#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/layer.h"
#include "layers/simple.h"

namespace tandem {

// Applies layers in turn. A ReLU is fused with the layer before it. A layer's name is the prefix of
// its parameters' names; an empty one adds nothing.
class Sequential : public Layer {
 public:
  template <class L, class... Args>
  Sequential& add(const std::string& name, Args&&... args) {
    layers_.push_back({name, std::make_unique<L>(std::forward<Args>(args)...)});
    return *this;
  }

  Sequential& add(const std::string& name, std::unique_ptr<Layer> layer) {
    layers_.push_back({name, std::move(layer)});
    return *this;
  }

  Var forward(Tape& tape, const Var& x) override {
    Var y = x;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = *layers_[i].layer;
      const bool relu_follows =
          i + 1 < layers_.size() && dynamic_cast<const Relu*>(layers_[i + 1].layer.get());
      y = relu_follows ? layer.forward_relu(tape, y) : layer.forward(tape, y);
      if (relu_follows) ++i;
    }
    return y;
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    for (auto& [name, layer] : layers_)
      layer->collect(name.empty() ? prefix : prefix + name + ".", into);
  }

 private:
  struct Child {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  std::vector<Child> layers_;
};

}  // namespace tandem
