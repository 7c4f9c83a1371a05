#include "tensor/cuda/convolution/convolution_call.h"

#include <algorithm>

namespace tandem::cuda {

namespace {

// Fast engines do not suit few channels, such as an image's. Folding pixels into channels, or
// padding the channels with zeros, may pay.
bool can_be_folded(const ConvolutionCall& call) {
  constexpr std::int64_t kFew = 4;
  const Convolution& o = call.convolution;
  return call.direction != Direction::data_gradient && call.channels() <= kFew && o.groups == 1 &&
         o.dilation == 1 && o.stride.square() && o.padding.square() && o.stride.height > 1 &&
         o.stride.height <= 4;
}

std::int64_t rounded(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

// The number of channels after folding.
std::int64_t channels_folded(const ConvolutionCall& call, std::int64_t unit) {
  const std::int64_t stride = call.convolution.stride.height;
  return rounded(stride * stride * call.channels(), unit);
}

// How many channels fit into 16 bytes.
std::int64_t widest(const ConvolutionCall& call) { return call.type() == Type::bf16 ? 8 : 4; }

}  // namespace

std::vector<ConvolutionForm> plain_forms(const ConvolutionCall& call) {
  std::vector<ConvolutionForm> forms;
  const auto add = [&](std::int64_t channels, bool folded) {
    const auto same = [&](const ConvolutionForm& f) {
      return f.channels == channels && f.folded == folded;
    };
    if (std::ranges::none_of(forms, same))
      forms.push_back({.channels = channels, .folded = folded, .filter_gradient = call.type()});
  };
  if (can_be_folded(call))
    for (const std::int64_t unit : {std::int64_t{16}, widest(call)})
      add(channels_folded(call, unit), true);

  if (call.convolution.groups == 1)
    for (const std::int64_t unit : {widest(call), std::int64_t{4}})
      add(rounded(call.channels(), unit), false);
  add(call.channels(), false);
  return forms;
}

std::optional<ConvolutionForm> unrolled_form(const ConvolutionCall& call) {
  if (call.direction != Direction::filter_gradient || !can_be_folded(call)) return std::nullopt;
  return ConvolutionForm{
      .channels = channels_folded(call, widest(call)), .folded = true, .unrolled = true};
}

Fold fold_of_filter(const ConvolutionCall& call, const ConvolutionForm& form) {
  const Shape& f = call.filter.shape();
  const std::int64_t stride = call.convolution.stride.height;
  return {.images = f[0],
          .height = f[1],
          .width = f[2],
          .channels = f[3],
          .factor = stride,
          .padding = 0,
          .out_height = (f[1] + stride - 1) / stride,
          .out_width = (f[2] + stride - 1) / stride,
          .out_channels = form.channels};
}

Fold fold_of_x(const ConvolutionCall& call, const ConvolutionForm& form) {
  const Fold filter = fold_of_filter(call, form);
  const Shape& x = call.x.shape();
  return {.images = x[0],
          .height = x[1],
          .width = x[2],
          .channels = x[3],
          .factor = filter.factor,
          .padding = call.convolution.padding.height,
          .out_height = call.y.size(1) + filter.out_height - 1,
          .out_width = call.y.size(2) + filter.out_width - 1,
          .out_channels = form.channels};
}

dnn::ConvolutionGraph graph_of(const ConvolutionCall& call, const ConvolutionForm& form) {
  dnn::ConvolutionGraph graph;
  graph.direction = call.direction;
  graph.convolution = call.convolution;
  graph.n = call.x.size(0);
  graph.h = call.x.size(1);
  graph.w = call.x.size(2);
  graph.c = form.channels;
  graph.k = call.filter.size(0);
  graph.r = call.filter.size(1);
  graph.s = call.filter.size(2);
  graph.type = call.type();
  graph.result_type =
      call.direction == Direction::filter_gradient ? form.filter_gradient : call.type();
  if (form.folded) {
    const Fold x = fold_of_x(call, form), filter = fold_of_filter(call, form);
    graph.convolution = {};
    graph.h = x.out_height;
    graph.w = x.out_width;
    graph.r = filter.out_height;
    graph.s = filter.out_width;
  }
  graph.bias = form.fused && call.bias.defined();
  graph.relu = form.fused && call.relu;
  return graph;
}

std::string text_of(const ConvolutionCall& call) {
  static constexpr const char* kDirections[] = {"forward", "data gradient", "filter gradient"};
  const Convolution& o = call.convolution;
  return fmt::format("{} of x {}, filter {}, stride {}, padding {}, dilation {}, {} groups, {}{}{}",
                     kDirections[static_cast<int>(call.direction)], call.x.shape(),
                     call.filter.shape(), o.stride, o.padding, o.dilation, o.groups,
                     name_of(call.input().dtype()), call.bias.defined() ? ", bias" : "",
                     call.relu ? ", ReLU" : "");
}

CallKey key_of(const Context& context, const ConvolutionCall& call) {
  const Convolution& o = call.convolution;
  return {static_cast<std::int64_t>(call.direction),
          static_cast<std::int64_t>(context.precision),
          context.deterministic,
          static_cast<std::int64_t>(call.type()),
          call.bias.defined(),
          call.relu,
          o.stride.height,
          o.stride.width,
          o.padding.height,
          o.padding.width,
          o.dilation,
          o.groups,
          call.x.size(0),
          call.x.size(1),
          call.x.size(2),
          call.x.size(3),
          call.filter.size(0),
          call.filter.size(1),
          call.filter.size(2)};
}

}  // namespace tandem::cuda
