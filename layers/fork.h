#pragma once

#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "layers/layer.h"

namespace tandem {

// Applies branches to the same input and concatenates the channels of their results. A branch's
// name is the prefix of its parameters' names; an empty one adds nothing.
class Fork : public Layer {
 public:
  Fork& add(const std::string& name, std::unique_ptr<Layer> branch) {
    branches_.push_back({name, std::move(branch)});
    return *this;
  }

  Var forward(Tape& tape, const Var& x) override {
    std::pmr::vector<Var> results(tape.memory());
    results.reserve(branches_.size());
    for (auto& [name, branch] : branches_) results.push_back(branch->forward(tape, x));
    return concat(tape, results);
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    for (auto& [name, branch] : branches_)
      branch->collect(name.empty() ? prefix : prefix + name + ".", into);
  }

 private:
  struct Branch {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  std::vector<Branch> branches_;
};

}  // namespace tandem
