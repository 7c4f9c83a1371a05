#include "tensor/cuda/convolution.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/cuda/convolution_call.h"
#include "tensor/cuda/engine_search.h"

namespace tandem::cuda {

namespace {

struct Choice {
  ConvolutionForm form;
  dnn::EnginePlace place;
  std::string engine;
  float milliseconds = 0;
};

// What the workers of this process have measured. The lock is held while one of them measures:
// others would disturb it, and most likely want to know the same.
struct Choices {
  std::mutex mutex;
  std::unordered_map<CallKey, Choice, CallKeyHash> known;
};

Choices& choices() {
  static Choices all;
  return all;
}

std::string text_of(const ConvolutionCall& call, const Choice& choice) {
  std::string text = fmt::format("{}: {}", text_of(call), choice.engine);
  if (choice.form.channels != call.channels())
    text += fmt::format(", {}{} channels", choice.form.folded ? "folded to " : "",
                        choice.form.channels);
  if (choice.form.fused) text += ", fused";
  if (call.direction == Direction::filter_gradient && choice.form.filter_gradient == Type::bf16)
    text += ", rounded to bf16";
  if (choice.milliseconds > 0) text += fmt::format(", {:.4f} ms", choice.milliseconds);
  return text;
}

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

// In y's type: for a bias of another, cuDNN has to compile its engines first.
Tensor bias_like(const Context& context, const Tensor& bias, const Tensor& y) {
  if (!bias.defined() || bias.dtype() == y.dtype()) return bias;
  const Tensor rounded = Tensor::empty(bias.shape(), y.dtype(), y.device());
  cast(context.queue, type_of(bias), bias.raw(), type_of(y), rounded.raw(), bias.count());
  return rounded;
}

}  // namespace

struct Convolutions::Plans {
  using Compute = FunctionRef<void(const dnn::Operands&)>;
  struct Ready {
    ConvolutionForm form;
    dnn::Plan plan;
    std::string text;
  };

  void run(const ConvolutionCall& call);
  Ready& ready_for(const ConvolutionCall& call);
  Choice choose(const ConvolutionCall& call, std::optional<dnn::Plan>& plan);
  void execute(const ConvolutionCall& call, const ConvolutionForm& form, Compute compute);
  void launch(dnn::Plan& plan, const dnn::Operands& operands);

  Context& context;
  std::unordered_map<CallKey, Ready, CallKeyHash> ready;
};

void Convolutions::Plans::launch(dnn::Plan& plan, const dnn::Operands& operands) {
  const auto address = [](void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const std::uintptr_t all =
      address(operands.x) | address(operands.filter) | address(operands.y) | address(operands.bias);
  require(all % 16 == 0, "a convolution was given a tensor that is not aligned to 16 bytes");
  check(plan.run(context.dnn, operands, context.workspace), "a convolution");
}

// Brings the operands into the form, calls `compute` and brings the result into the call's.
void Convolutions::Plans::execute(const ConvolutionCall& call, const ConvolutionForm& form,
                                  Compute compute) {
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
        const Fold shape = fold_of_filter(call, form);
        result =
            Tensor::empty({shape.images, shape.out_height, shape.out_width, shape.out_channels},
                          dtype, dfilter.device());
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

// Leaves the plan of what was chosen in `plan`.
Choice Convolutions::Plans::choose(const ConvolutionCall& call, std::optional<dnn::Plan>& plan) {
  ConvolutionCall trial = call;
  if (call.accumulate) {  // the output must survive the trials
    trial.accumulate = false;
    trial.output() =
        Tensor::empty(trial.output().shape(), trial.output().dtype(), trial.output().device());
  }

  Choice best;
  const auto consider = [&](const ConvolutionForm& form) {
    std::optional<dnn::FoundEngine> found;
    execute(trial, form, [&](const dnn::Operands& operands) {
      found = dnn::search_engine(context, graph_of(trial, form), operands);
    });
    if (!found) return;
    float milliseconds = 0;
    if (!context.deterministic)
      milliseconds = dnn::measure(context, [&] {
        execute(trial, form, [&](const dnn::Operands& operands) { launch(found->plan, operands); });
      });
    if (plan && milliseconds >= best.milliseconds) return;
    best = {form, found->place, found->plan.engine().name, milliseconds};
    plan = std::move(found->plan);
  };

  std::vector<ConvolutionForm> forms = plain_forms(call);
  // Without rounding to bf16 in between, where there are engines that do not.
  const bool rounded =
      call.direction == Direction::filter_gradient && forms.front().filter_gradient == Type::bf16;
  const auto unrounded = [](ConvolutionForm form) {
    form.filter_gradient = Type::f32;
    return form;
  };
  if (context.deterministic) {
    if (rounded) forms.insert(forms.begin(), unrounded(forms.front()));
    for (std::size_t i = 0; i < forms.size() && !plan; ++i) consider(forms[i]);
  } else {
    for (const ConvolutionForm& form : forms) consider(form);
    if (rounded) consider(unrounded(plan ? best.form : forms.front()));
    if (call.bias.defined() || call.relu) {
      ConvolutionForm fused = plan ? best.form : forms.front();
      fused.fused = true;
      consider(fused);
    }
  }
  if (!plan) throw SystemError("cuDNN has no engine for the {}", text_of(call));
  return best;
}

Convolutions::Plans::Ready& Convolutions::Plans::ready_for(const ConvolutionCall& call) {
  const CallKey key = key_of(context, call);
  if (const auto found = ready.find(key); found != ready.end()) return found->second;

  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(context.stream, &capturing), "asking for a capture");
  if (capturing != cudaStreamCaptureStatusNone)
    throw SystemError(
        "a step is being recorded, but has not run before: no engine is chosen for the {}",
        text_of(call));

  std::optional<dnn::Plan> plan;
  Choice choice;
  {
    Choices& all = choices();
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.known.find(key); known != all.known.end()) {
      choice = known->second;
    } else {
      choice = choose(call, plan);
      all.known.emplace(key, choice);
    }
  }
  if (!plan) plan = dnn::plan_at(context, graph_of(call, choice.form), choice.place);
  return ready.emplace(key, Ready{choice.form, std::move(*plan), text_of(call, choice)})
      .first->second;
}

void Convolutions::Plans::run(const ConvolutionCall& call) {
  Ready& chosen = ready_for(call);
  execute(call, chosen.form, [&](const dnn::Operands& operands) { launch(chosen.plan, operands); });
}

Convolutions::Convolutions(Context& context) : context_(context), plans_(new Plans{context, {}}) {}

Convolutions::~Convolutions() = default;

void Convolutions::forward(const Convolution& o, const Tensor& x, const Tensor& filter,
                           const Tensor& bias, bool relu, const Tensor& y) {
  if (y.count() == 0) return;
  plans_->run({Direction::forward, o, x, filter, y, bias, relu});
}

void Convolutions::data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter,
                                 const Tensor& dx, bool accumulate) {
  if (dx.count() == 0) return;
  plans_->run({Direction::data_gradient, o, dx, filter, dy, {}, false, accumulate});
}

void Convolutions::filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                                   const Tensor& dfilter, bool accumulate) {
  if (dy.count() == 0) {
    if (!accumulate) fill(context_.queue, Type::f32, dfilter.raw(), dfilter.count(), 0);
    return;
  }
  plans_->run({Direction::filter_gradient, o, x, dfilter, dy, {}, false, accumulate});
}

std::string Convolutions::describe() const {
  std::set<std::string> lines;
  for (const auto& [key, chosen] : plans_->ready) lines.insert(chosen.text);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace tandem::cuda
