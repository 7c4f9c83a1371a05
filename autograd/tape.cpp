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
  last_used_ = &parameter;
  if (!training() || !parameter.trained()) return Var{parameter.used};
  ++use_of(parameter).pending;
  Node leaf{parameter.shape, parameter.value.dtype()};
  leaf.parameter = &parameter;
  return Var{parameter.used, append(std::move(leaf))};
}

int Tape::append(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

Tape::Node& Tape::node_at(int index) {
  require(index >= 0 && static_cast<std::size_t>(index) < nodes_.size(),
          "value {} is not on the tape: it belongs to an earlier step", index);
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
  ++node.not_rectified;
  if (!node.gradient.defined()) {
    node.gradient = Tensor::empty(node.shape, node.dtype, *device_);
    return GradientSlot{node.gradient, false};
  }
  if (node.takes_parts && !node.more.defined()) {
    node.more = Tensor::empty(node.shape, node.dtype, *device_);
    return GradientSlot{node.more, false};
  }
  if (node.gradient.shared()) node.gradient = node.gradient.clone();  // see add_gradient
  return GradientSlot{node.gradient, true};
}

void Tape::add_gradient(int index, const Tensor& contribution) {
  if (index == Var::kConstant) return;
  Node& node = node_at(index);
  if (!node.parameter && (!node.gradient.defined() || (node.takes_parts && !node.more.defined()))) {
    (node.gradient.defined() ? node.more : node.gradient) = contribution;
    ++node.not_rectified;
    return;
  }
  const auto slot = gradient_slot(index);
  require(contribution.dtype() == slot->tensor.dtype(), "a gradient of {} cannot be added to {}",
          name_of(contribution.dtype()), name_of(slot->tensor.dtype()));
  if (slot->accumulate)
    contribution.backend().add(slot->tensor, contribution, slot->tensor);
  else
    contribution.backend().copy(contribution, slot->tensor);
}

void Tape::rectify(int index) {
  if (index != Var::kConstant) --node_at(index).not_rectified;
}

void Tape::backward(const Var& loss, const ParameterSet& parameters) {
  require(loss.has_gradient(), "the loss does not depend on any trained parameter");
  require(loss.value.count() == 1, "backward starts from one number, not from {}",
          loss.value.shape());

  device_ = loss.value.device();
  if (!one_.defined() || one_.dtype() != loss.value.dtype() || one_.device() != *device_) {
    one_ = Tensor::empty({}, loss.value.dtype(), *device_);
    one_.backend().fill(one_, 1);
  }
  add_gradient(loss.node, one_.reshape(loss.value.shape()));

  while (!nodes_.empty()) {
    // Moved off the tape before it runs. What only it still held is freed when it has run.
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    if (Parameter* p = node.parameter) {
      Use& use = use_of(*p);
      if (--use.pending > 0 || !use.has_gradient) continue;
      use.ready = true;
      last_used_ = p;
      if (hooks_ && hooks_->wants_ready_events()) p->ready = device_->backend().record_event();
      if (hooks_) hooks_->on_grad_ready(*p);
    } else if (node.gradient.defined()) {
      rectified_ = node.not_rectified == 0;
      node.operation->backward(*this, node.gradient, node.more);
    }
  }

  for (const Parameter* p : parameters.trained())
    require(use_of(*p).ready,
            "parameter {} received no gradient: forward did not use it, or the loss does not "
            "depend on it",
            p->name);
}

}  // namespace tandem
