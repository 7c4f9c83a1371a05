#include "autograd/parameter.h"

#include <set>
#include <type_traits>
#include <utility>

#include "tensor/backend.h"
#include "tensor/state.h"

namespace tandem {
namespace {

constexpr std::int64_t kAlignment = 16;  // elements: a cache line of f32

std::int64_t aligned(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

void place(Parameter& p, Tensor value) {
  p.value = std::move(value);
  const Parameter::Make make = std::exchange(p.initial, {});
  if (!make) return;
  const std::vector<float> values = make();
  require(static_cast<std::int64_t>(values.size()) == p.shape.count(),
          "{} initial values do not fill the shape {}", values.size(), p.shape);
  with_float_type(p.value.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, float>)
      p.value.copy_from_host(std::span<const float>(values));
    else
      p.value.copy_from_host(std::span<const T>(std::vector<T>(values.begin(), values.end())));
  });
}

}  // namespace

Parameter::Parameter(const Shape& of, std::vector<float> values, Role its_role)
    : Parameter(
          of, [values] { return values; }, its_role) {
  require(static_cast<std::int64_t>(values.size()) == shape.count(),
          "{} initial values do not fill the shape {}", values.size(), shape);
}

ParameterSet::ParameterSet(const std::vector<Named>& named, const Device& device, Dtype used_dtype)
    : device_(device) {
  const bool low = used_dtype == Dtype::bf16;
  const Dtype dtype = low ? Dtype::f32 : used_dtype;
  std::set<std::string> names;
  std::int64_t flat_count = 0;
  for (const auto& [name, p] : named) {
    require(p->index < 0, "parameter {} already belongs to a set", name);
    require(names.insert(name).second, "two parameters are named {}", name);
    p->name = name;
    p->index = static_cast<std::int64_t>(all_.size());
    all_.push_back(p);
    if (!p->trained()) {
      place(*p, Tensor::empty(p->shape, dtype, device));
      continue;
    }
    p->offset = flat_count;
    flat_count += aligned(p->shape.count());
    trained_.push_back(p);
  }
  values_ = Tensor::zeros({flat_count}, dtype, device);
  momenta_ = Tensor::zeros({flat_count}, dtype, device);
  for (Parameter* p : trained_) {
    place(*p, values_.view(p->offset, p->shape));
    p->momentum = momenta_.view(p->offset, p->shape);
  }
  set_gradients(Tensor::zeros({flat_count}, dtype, device));

  if (low) low_values_ = Tensor::empty({flat_count}, Dtype::bf16, device);
  for (Parameter* p : all_) {
    p->used = p->value;
    if (!low || p->shape.rank() < 2) continue;
    p->used = p->trained() ? low_values_.view(p->offset, p->shape)
                           : Tensor::empty(p->shape, Dtype::bf16, device);
  }
  values_changed();
}

void ParameterSet::values_changed() {
  if (!low_values_.defined()) return;
  device_.backend().cast(values_, low_values_);
  for (const Parameter* p : all_)
    if (!p->trained() && p->used.dtype() == Dtype::bf16) device_.backend().cast(p->value, p->used);
}

void ParameterSet::visit(State& state) {
  for (Parameter* p : all_) state("value of " + p->name, p->value);
  values_changed();
}

void ParameterSet::set_gradients(Tensor gradients) {
  require(gradients.count() == values_.count() && gradients.dtype() == values_.dtype(),
          "a gradient of {} {} does not match the parameters", gradients.count(),
          name_of(gradients.dtype()));
  gradients_ = std::move(gradients);
  for (Parameter* p : trained_) p->gradient = gradients_.view(p->offset, p->shape);
}

std::int64_t ParameterSet::count() const {
  std::int64_t total = 0;
  for (const Parameter* p : all_)
    if (p->role != Role::statistic) total += p->shape.count();
  return total;
}

}  // namespace tandem
