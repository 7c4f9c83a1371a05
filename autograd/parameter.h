// The weights of a model. A layer owns its Parameters. A ParameterSet places all trained parameters
// of a model in three flat buffers on one device (values, gradients, momenta), and every Parameter
// holds views of them. The flat gradient is what distributed strategies send.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/event.h"
#include "tensor/tensor.h"

namespace tandem {

class State;

enum class Role {
  trained,    // has a gradient and a momentum; lives in the flat buffers
  fixed,      // a weight that training does not change: it has only a value
  statistic,  // measured by forward, such as the running mean of a batch norm
};

struct Parameter {
  Parameter(const Shape& of, std::vector<float> values, Role its_role = Role::trained);
  // The values are made when a ParameterSet needs them: a model without one takes no memory.
  using Make = std::function<std::vector<float>()>;
  template <std::invocable F>
  Parameter(const Shape& of, F make, Role its_role = Role::trained)
      : shape(of), initial(std::move(make)), role(its_role) {}
  Parameter(const Parameter&) = delete;  // sets and tapes know it by its address
  Parameter& operator=(const Parameter&) = delete;

  Shape shape;
  Make initial;  // called once, by the ParameterSet; if it is null, the values stay undefined
  Role role;
  // If the columns of a weight are images [h, w, c] (a filter [k, h, w, c]; a linear layer after a
  // flatten), their shape; else rank 0. Files store them channels first, as PyTorch does.
  Shape image;

  bool trained() const { return role == Role::trained; }

  // Set by the ParameterSet. Forward reads `used`: the value or, where products are in bf16, a bf16
  // copy of weights with more than one dimension (biases and batch norms stay f32).
  std::string name;          // unique in the model, as PyTorch would name it: "0.weight"
  std::int64_t index = -1;   // position in the set
  std::int64_t offset = -1;  // first element in the flat buffers
  Tensor value, used, gradient, momentum;

  EventPtr ready;  // see Hooks::on_grad_ready
};

class ParameterSet {
 public:
  struct Named {
    std::string name;
    Parameter* parameter;
  };

  // Places the parameters, in the given order, on `device` as `dtype` (f32; f64 for gradient
  // checks; bf16 means f32 with copies in bf16). They must outlive the set and belong to no other.
  ParameterSet(const std::vector<Named>& named, const Device& device, Dtype dtype = Dtype::f32);

  const std::vector<Parameter*>& all() const { return all_; }
  const std::vector<Parameter*>& trained() const { return trained_; }
  const Device& device() const { return device_; }

  // Only trained parameters are in the flat buffers. Each begins at a multiple of 16 elements;
  // the padding between them is zero and stays zero.
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  const Tensor& momenta() const { return momenta_; }
  const Tensor& low_values() const { return low_values_; }  // the copies in bf16; may be undefined

  // Updates the bf16 copies; call it after writing values without an optimizer.
  void values_changed();

  // All values, with what forward measured, to be saved or loaded.
  void visit(State& state);

  // Backward writes here from now on. This lets a strategy keep a gradient while the next one is
  // computed.
  void set_gradients(Tensor gradients);

  // The number of elements of all weights, trained and fixed, without padding and statistics.
  std::int64_t count() const;

 private:
  Device device_;
  std::vector<Parameter*> all_, trained_;
  Tensor values_, gradients_, momenta_, low_values_;
};

}  // namespace tandem
