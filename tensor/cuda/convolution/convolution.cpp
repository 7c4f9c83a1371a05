#include "tensor/cuda/convolution/convolution.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tensor/cuda/convolution/convolution_choice.h"
#include "tensor/cuda/convolution/convolution_forms.h"
#include "tensor/cuda/queue/gpu_time.h"

namespace tandem::cuda {

struct Convolutions::Plans {
  struct Ready {
    ConvolutionForm form;
    std::optional<dnn::EnginePlan> plan;  // nothing if the form is unrolled
    std::string text;
  };

  void run(const ConvolutionCall& call);
  Ready& ready_for(const ConvolutionCall& call);
  ConvolutionChoice known_or_chosen(const CallKey& key, const ConvolutionCall& call,
                                    std::optional<dnn::EnginePlan>& plan);
  ConvolutionChoice choose(const ConvolutionCall& call, std::optional<dnn::EnginePlan>& plan);
  std::optional<dnn::EnginePlan> plan_of(const ConvolutionCall& call,
                                         const ConvolutionChoice& choice);
  void launch(const ConvolutionCall& call, const ConvolutionForm& form,
              std::optional<dnn::EnginePlan>& plan);

  Context& context;
  Products& products;
  std::map<CallKey, Ready> ready;
};

void Convolutions::Plans::launch(const ConvolutionCall& call, const ConvolutionForm& form,
                                 std::optional<dnn::EnginePlan>& plan) {
  if (form.unrolled) return execute_unrolled(context, products, call, form);
  execute(context, call, form, [&](const dnn::Operands& operands) {
    const auto address = [](void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const std::uintptr_t all = address(operands.x) | address(operands.filter) |
                               address(operands.y) | address(operands.bias);
    require(all % 16 == 0, "a convolution was given a tensor that is not aligned to 16 bytes");
    check(plan->run(context.dnn, operands, context.workspace), "a convolution");
  });
}

// Stores the plan of the choice in `plan`.
ConvolutionChoice Convolutions::Plans::choose(const ConvolutionCall& call,
                                              std::optional<dnn::EnginePlan>& plan) {
  ConvolutionCall trial = call;
  if (call.accumulate) {  // the trials must not change the output
    trial.accumulate = false;
    trial.output() =
        Tensor::empty(trial.output().shape(), trial.output().dtype(), trial.output().device());
  }

  std::optional<ConvolutionChoice> best;
  const auto compare = [&](ConvolutionChoice choice, std::optional<dnn::EnginePlan> with) {
    if (!context.deterministic)
      choice.milliseconds = milliseconds(context.stream, [&] { launch(trial, choice.form, with); });
    if (best && choice.milliseconds >= best->milliseconds) return;
    best = std::move(choice);
    plan = std::move(with);
  };
  const auto consider = [&](const ConvolutionForm& form) {
    std::optional<dnn::FoundEngine> found;
    execute(context, trial, form, [&](const dnn::Operands& operands) {
      found = dnn::search_engine(context, graph_of(trial, form), operands);
    });
    if (!found) return;
    std::string engine = found->plan.engine().name;
    compare({form, found->place, std::move(engine)}, std::move(found->plan));
  };

  std::vector<ConvolutionForm> forms = plain_forms(call);
  // Some engines write an f32 filter gradient directly. Try them too, because they do not round to
  // bf16.
  const bool rounded =
      call.direction == Direction::filter_gradient && forms.front().filter_gradient == Type::bf16;
  const auto unrounded = [](ConvolutionForm form) {
    form.filter_gradient = Type::f32;
    return form;
  };
  if (context.deterministic) {
    if (rounded) forms.insert(forms.begin(), unrounded(forms.front()));
    for (std::size_t i = 0; i < forms.size() && !best; ++i) consider(forms[i]);
  } else {
    for (const ConvolutionForm& form : forms) consider(form);
    if (rounded) consider(unrounded(best ? best->form : forms.front()));
    if (call.bias.defined() || call.relu) {
      ConvolutionForm fused = best ? best->form : forms.front();
      fused.fused = true;
      consider(fused);
    }
    if (const auto unrolled = unrolled_form(call))
      compare({*unrolled, {}, "a product of windows"}, std::nullopt);
  }
  if (!best) throw SystemError("cuDNN has no engine for the {}", text_of(call));
  return *best;
}

std::optional<dnn::EnginePlan> Convolutions::Plans::plan_of(const ConvolutionCall& call,
                                                            const ConvolutionChoice& choice) {
  if (choice.form.unrolled) return std::nullopt;
  return dnn::plan_at(context, graph_of(call, choice.form), choice.place, choice.engine);
}

// Returns the choice of another worker or of an earlier process, or else measures now. (A
// deterministic context measures nothing.) May store the plan in `plan`.
ConvolutionChoice Convolutions::Plans::known_or_chosen(const CallKey& key,
                                                       const ConvolutionCall& call,
                                                       std::optional<dnn::EnginePlan>& plan) {
  ConvolutionChoices& all = ConvolutionChoices::of(context.device);
  return all.made.find_or_choose(key, [&] {
    std::optional<ConvolutionChoice> choice;
    if (!context.deterministic) choice = all.recall(key);
    if (choice) plan = plan_of(call, *choice);
    if (!choice || (!plan && !choice->form.unrolled)) {
      choice = choose(call, plan);
      if (!context.deterministic) all.keep(key, *choice);
    }
    return *choice;
  });
}

Convolutions::Plans::Ready& Convolutions::Plans::ready_for(const ConvolutionCall& call) {
  const CallKey key = key_of(context, call);
  if (const auto found = ready.find(key); found != ready.end()) return found->second;

  context.refuse_while_recording("the " + text_of(call));

  std::optional<dnn::EnginePlan> plan;
  const ConvolutionChoice choice = known_or_chosen(key, call, plan);
  if (!plan && !choice.form.unrolled) {
    plan = plan_of(call, choice);
    if (!plan) throw SystemError("cuDNN cannot build a convolution that it has built before");
  }
  return ready.emplace(key, Ready{choice.form, std::move(plan), text_of(call, choice)})
      .first->second;
}

void Convolutions::Plans::run(const ConvolutionCall& call) {
  Ready& chosen = ready_for(call);
  launch(call, chosen.form, chosen.plan);
}

Convolutions::Convolutions(Context& context, Products& products)
    : context_(context), plans_(new Plans{context, products, {}}) {}

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
