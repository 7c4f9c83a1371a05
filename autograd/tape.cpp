#include "autograd/tape.h"

#include "tensor/backend.h"

namespace tandem {

void Tape::begin(Mode mode, const Random& random) {
  nodes_.clear();
  uses_.clear();
  mode_ = mode;
  random_ = random;
  random_streams_ = 0;
}

Var Tape::use(Parameter& parameter) {
  if (hooks_) hooks_->before_use(parameter);
  if (!training() || !parameter.trained()) return Var{parameter.value};
  ++use_of(parameter).pending;
  Node leaf{parameter.shape, parameter.value.dtype()};
  leaf.parameter = &parameter;
  return Var{parameter.value, append(std::move(leaf))};
}

int Tape::append(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

Tape::Node& Tape::node_at(int index) {
  require(index >= 0 && static_cast<std::size_t>(index) < nodes_.size(),
          "value {} is not on the tape: it belongs to a step that is over", index);
  return nodes_[static_cast<std::size_t>(index)];
}

Tape::Use& Tape::use_of(const Parameter& parameter) {
  const auto index = static_cast<std::size_t>(parameter.index);
  if (uses_.size() <= index) uses_.resize(index + 1);
  return uses_[index];
}

std::optional<GradientSlot> Tape::gradient_slot(int index) {
  if (index == Var::kConstant) return std::nullopt;
  Node& node = node_at(index);
  if (const Parameter* p = node.parameter)
    return GradientSlot{p->gradient, std::exchange(use_of(*p).has_gradient, true)};
  const bool accumulate = node.gradient.defined();
  if (!accumulate)
    node.gradient = Tensor::empty(node.shape, node.dtype, *device_);
  else if (node.gradient.shared())
    node.gradient = node.gradient.clone();  // see add_gradient
  return GradientSlot{node.gradient, accumulate};
}

void Tape::add_gradient(int index, const Tensor& contribution) {
  if (index == Var::kConstant) return;
  Node& node = node_at(index);
  if (!node.parameter && !node.gradient.defined()) {
    node.gradient = contribution;
    return;
  }
  const auto slot = gradient_slot(index);
  if (slot->accumulate)
    contribution.backend().add(slot->tensor, contribution, slot->tensor);
  else
    contribution.backend().copy(contribution, slot->tensor);
}

void Tape::backward(const Var& loss, const ParameterSet& parameters) {
  require(loss.has_gradient(), "the loss does not depend on any trained parameter");
  require(loss.value.count() == 1, "backward starts from one number, not from {}",
          loss.value.shape());

  device_ = loss.value.device();
  Tensor seed = gradient_slot(loss.node)->tensor;
  with_float_type(seed.dtype(), [&]<class T>() {
    const T one = 1;
    seed.copy_from_host(std::span<const T>(&one, 1));
  });

  while (!nodes_.empty()) {
    // Taken off the tape before it runs; what it alone still held is given back when it has run.
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    if (Parameter* p = node.parameter) {
      Use& use = use_of(*p);
      if (--use.pending > 0 || !use.has_gradient) continue;
      use.ready = true;
      if (hooks_) hooks_->on_grad_ready(*p);
    } else if (node.gradient.defined()) {
      node.operation->backward(*this, node.gradient);
    }
  }

  for (const Parameter* p : parameters.trained())
    require(use_of(*p).ready,
            "parameter {} received no gradient: forward did not use it, or the loss does not "
            "depend on it",
            p->name);
}

}  // namespace tandem
