// What training changes. A layer owns its Parameters; a ParameterSet lays all of a model's
// parameters out in three flat buffers on one device (values, gradients, momenta), and every
// Parameter holds views of them. The flat gradient is what distributed strategies send.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tandem {

struct Parameter {
  Parameter(const Shape& of, std::vector<float> values, bool is_trainable = true);
  Parameter(const Parameter&) = delete;  // sets and tapes know it by its address
  Parameter& operator=(const Parameter&) = delete;

  Shape shape;
  std::vector<float> initial;  // moved into `value` by the ParameterSet
  bool trainable;              // a fixed parameter has a value and nothing else

  // Set by the ParameterSet.
  std::string name;          // unique in the model, as PyTorch would name it: "0.weight"
  std::int64_t index = -1;   // position in the set, the order in which forward meets them
  std::int64_t offset = -1;  // first element in the flat buffers
  Tensor value, gradient, momentum;
};

class ParameterSet {
 public:
  struct Named {
    std::string name;
    Parameter* parameter;
  };

  // Places the parameters, in the given order, on `device` as `dtype` (f32, or f64 for gradient
  // checks). They must outlive the set and belong to no other.
  ParameterSet(const std::vector<Named>& named, const Device& device, Dtype dtype = Dtype::f32);

  const std::vector<Parameter*>& all() const { return all_; }
  const std::vector<Parameter*>& trainable() const { return trainable_; }
  const Device& device() const { return device_; }

  // Only trainable parameters are in the flat buffers. Each begins at a multiple of 16 elements;
  // the padding between them is zero and stays zero.
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  const Tensor& momenta() const { return momenta_; }

  // Backward writes here from now on. Lets a strategy keep a gradient while the next one is made.
  void set_gradients(Tensor gradients);

  // Elements of all parameters, padding not counted.
  std::int64_t count() const;

 private:
  Device device_;
  std::vector<Parameter*> all_, trainable_;
  Tensor values_, gradients_, momenta_;
};

}  // namespace tandem
