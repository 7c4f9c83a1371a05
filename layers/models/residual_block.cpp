#include "layers/models/residual_block.h"

namespace tandem {

ResidualBlock::ResidualBlock(const Options& o, const Random& random) {
  const auto add = [&](std::int64_t in, std::int64_t out, std::int64_t window,
                       std::int64_t stride) {
    body_.push_back(
        std::make_unique<ConvNorm>(in, out, window, stride, random.split(body_.size())));
  };
  if (o.bottleneck) {
    add(o.in, o.width, 1, 1);
    add(o.width, o.width, 3, o.stride);
    add(o.width, o.out(), 1, 1);
  } else {
    add(o.in, o.width, 3, o.stride);
    add(o.width, o.width, 3, 1);
  }
  if (o.stride != 1 || o.in != o.out())
    shortcut_ = std::make_unique<ConvNorm>(o.in, o.out(), 1, o.stride, random.split(body_.size()));
}

Var ResidualBlock::forward(Tape& tape, const Var& x) {
  Var y = x;
  for (std::size_t i = 0; i + 1 < body_.size(); ++i) y = body_[i]->forward_relu(tape, y);
  y = body_.back()->conv.forward(tape, y);
  const Var residual = shortcut_ ? shortcut_->forward(tape, x) : x;
  return body_.back()->norm.forward_add_relu(tape, y, residual);
}

void ResidualBlock::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  for (std::size_t i = 0; i < body_.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    body_[i]->conv.collect(prefix + "conv" + number + ".", into);
    body_[i]->norm.collect(prefix + "bn" + number + ".", into);
  }
  if (!shortcut_) return;
  shortcut_->conv.collect(prefix + "downsample.0.", into);
  shortcut_->norm.collect(prefix + "downsample.1.", into);
}

}  // namespace tandem
