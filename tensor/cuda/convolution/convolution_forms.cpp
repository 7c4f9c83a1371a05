#include "tensor/cuda/convolution/convolution_forms.h"

#include <algorithm>
#include <cstdint>

namespace tandem::cuda {

namespace {

Tensor with_channels(const Context& context, const Tensor& x, std::int64_t channels) {
  if (x.size(3) == channels) return x;
  const Tensor padded =
      Tensor::empty({x.size(0), x.size(1), x.size(2), channels}, x.dtype(), x.device());
  const Type type = type_of(x);
  resize_rows(context.queue, type, x.raw(), x.size(3), type, padded.raw(), channels,
              x.count() / x.size(3), false);
  return padded;
}

Tensor folded(const Context& context, const Tensor& x, const Fold& shape) {
  const Tensor result = Tensor::empty(
      {shape.images, shape.out_height, shape.out_width, shape.out_channels}, x.dtype(), x.device());
  fold(context.queue, type_of(x), shape, x.raw(), result.raw());
  return result;
}

Tensor x_in_form(const Context& context, const ConvolutionCall& call, const ConvolutionForm& form) {
  return form.folded ? folded(context, call.x, fold_of_x(call, form))
                     : with_channels(context, call.x, form.channels);
}

Tensor filter_in_form(const Context& context, const ConvolutionCall& call,
                      const ConvolutionForm& form) {
  return form.folded ? folded(context, call.filter, fold_of_filter(call, form))
                     : with_channels(context, call.filter, form.channels / call.convolution.groups);
}

// Converts the bias to y's type. For another type, cuDNN would have to compile its engines first.
Tensor bias_like(const Context& context, const Tensor& bias, const Tensor& y) {
  if (!bias.defined() || bias.dtype() == y.dtype()) return bias;
  const Tensor rounded = Tensor::empty(bias.shape(), y.dtype(), y.device());
  cast(context.queue, type_of(bias), bias.raw(), type_of(y), rounded.raw(), bias.count());
  return rounded;
}

// Memory for the gradient of a folded filter.
Tensor empty_filter(const ConvolutionCall& call, const ConvolutionForm& form, Dtype dtype) {
  const Fold shape = fold_of_filter(call, form);
  return Tensor::empty({shape.images, shape.out_height, shape.out_width, shape.out_channels}, dtype,
                       call.filter.device());
}

}  // namespace

void execute(const Context& context, const ConvolutionCall& call, const ConvolutionForm& form,
             FunctionRef<void(const dnn::Operands&)> compute) {
  const Queue& queue = context.queue;
  const Type type = call.type();
  const bool resized = form.channels != call.channels();
  const Tensor& y = call.y;
  switch (call.direction) {
    case Direction::forward: {
      const Tensor x = x_in_form(context, call, form);
      const Tensor filter = filter_in_form(context, call, form);
      const std::int64_t k = y.size(3);
      if (form.fused) {
        const Tensor bias = bias_like(context, call.bias, y);
        compute({x.raw(), filter.raw(), y.raw(), bias.defined() ? bias.raw() : nullptr});
        break;
      }
      compute({x.raw(), filter.raw(), y.raw()});
      if (call.bias.defined())
        add_bias(queue, type, call.bias.data<float>(), y.raw(), y.count() / k, k);
      if (call.relu) relu(queue, type, y.raw(), y.raw(), y.count());
      break;
    }
    case Direction::data_gradient: {
      const Tensor& dx = call.x;
      const Tensor filter = filter_in_form(context, call, form);
      Tensor result = dx;
      if (resized || call.accumulate)
        result = Tensor::empty({dx.size(0), dx.size(1), dx.size(2), form.channels}, dx.dtype(),
                               dx.device());
      compute({result.raw(), filter.raw(), y.raw()});
      if (resized)
        resize_rows(queue, type, result.raw(), form.channels, type, dx.raw(), dx.size(3),
                    dx.count() / dx.size(3), call.accumulate);
      else if (call.accumulate)
        add(queue, type, dx.raw(), result.raw(), dx.raw(), dx.count());
      break;
    }
    case Direction::filter_gradient: {
      const Tensor x = x_in_form(context, call, form);
      const Tensor& dfilter = call.filter;
      const std::int64_t columns = dfilter.size(3);
      const bool direct = !resized && !call.accumulate && form.filter_gradient == Type::f32;
      const Dtype dtype = form.filter_gradient == Type::bf16 ? Dtype::bf16 : Dtype::f32;
      Tensor result = dfilter;
      if (form.folded) {
        result = empty_filter(call, form, dtype);
      } else if (!direct) {
        result = Tensor::empty({dfilter.size(0), dfilter.size(1), dfilter.size(2),
                                form.channels / call.convolution.groups},
                               dtype, dfilter.device());
      }
      compute({x.raw(), result.raw(), y.raw()});
      if (form.folded)
        unfold(queue, form.filter_gradient, fold_of_filter(call, form), result.raw(),
               dfilter.data<float>(), call.accumulate);
      else if (resized)
        resize_rows(queue, form.filter_gradient, result.raw(), result.size(3), Type::f32,
                    dfilter.raw(), columns, dfilter.count() / columns, call.accumulate);
      else if (!direct)
        add_to_f32(queue, form.filter_gradient, result.raw(), dfilter.data<float>(),
                   dfilter.count(), call.accumulate);
      break;
    }
  }
}

void execute_unrolled(const Context& context, Products& products, const ConvolutionCall& call,
                      const ConvolutionForm& form, std::size_t most_bytes) {
  const Tensor x = x_in_form(context, call, form);
  const Tensor& dy = call.y;
  const Tensor result = empty_filter(call, form, Dtype::f32);
  const std::int64_t images = x.size(0), pixels = dy.size(1) * dy.size(2), k = dy.size(3);
  const std::int64_t columns = result.count() / k;

  const auto image_bytes = static_cast<std::size_t>(pixels * columns) * bytes_of(x.dtype());
  const std::int64_t most =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(most_bytes / image_bytes));
  // All chunks but the last have the same size, because every size needs its own choice of an
  // algorithm.
  const std::int64_t chunks = (images + most - 1) / most, chunk = (images + chunks - 1) / chunks;
  const Tensor windows = Tensor::empty({chunk * pixels, columns}, x.dtype(), x.device());
  for (std::int64_t first = 0; first < images; first += chunk) {
    const std::int64_t count = std::min(chunk, images - first), rows = count * pixels;
    const Tensor part =
        x.view(first * x.count() / images, {count, x.size(1), x.size(2), x.size(3)});
    unroll(context.queue, type_of(x),
           {.images = count,
            .height = x.size(1),
            .width = x.size(2),
            .channels = x.size(3),
            .window_height = result.size(1),
            .window_width = result.size(2)},
           part.raw(), windows.raw());
    products.multiply({.a = dy.view(first * pixels * k, {rows, k}),
                       .transpose_a = true,
                       .b = windows.view(0, {rows, columns}),
                       .c = result.reshape({k, columns}),
                       .accumulate = first > 0});
  }
  unfold(context.queue, Type::f32, fold_of_filter(call, form), result.raw(),
         call.filter.data<float>(), call.accumulate);
}

}  // namespace tandem::cuda
