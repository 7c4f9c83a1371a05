// The part of cuDNN's graph API that convolutions need: what is to be computed (Graph), the ways
// cuDNN offers to compute it (Engine), and one of them ready to run (EnginePlan).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/backend.h"
#include "tensor/cuda/kernels/kernels.h"
#include "tensor/cuda/queue/check.h"

namespace tandem::cuda::dnn {

// cuDNN's handle for everything: attributes are set one by one, then it is finalized and read only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, auto value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }

  // How many values there are; at most `room` of them are written.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t room, void* values) const;
  std::int64_t get_int64(cudnnBackendAttributeName_t name) const;
  // Descriptors are read into descriptors that exist already, all of one type.
  std::vector<Descriptor> get_all(cudnnBackendAttributeName_t name,
                                  cudnnBackendDescriptorType_t type) const;

  void finalize();
  bool finalize_if_supported();  // false where cuDNN cannot do what is described

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t d) const { cudnnBackendDestroyDescriptor(d); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

enum class Direction { forward, data_gradient, filter_gradient };

// x[n, h, w, c] * filter[k, r, s, c / groups] = y[n, p, q, k], or the gradient of x or filter.
struct ConvolutionGraph {
  Direction direction = Direction::forward;
  Convolution convolution;
  std::int64_t n = 0, h = 0, w = 0, c = 0, k = 0, r = 0, s = 0;
  Type type = Type::f32;            // of the two inputs
  Type result_type = Type::f32;     // of the output
  bool bias = false, relu = false;  // of forward, in the same pass; the bias is of y's type
};

// Device memory of a graph's tensors or of their gradients; bias only where the graph has one.
struct Operands {
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  void* bias = nullptr;

  friend bool operator==(const Operands&, const Operands&) = default;
};

// One way to compute a graph.
struct Engine {
  Descriptor config;
  std::string name;    // the engine's number and its settings: different for different engines
  unsigned notes = 0;  // bit i is set where cuDNN's numerical note i applies
  bool compiled_at_runtime = false;

  bool has(cudnnBackendNumericalNote_t note) const { return (notes >> note & 1) != 0; }
};

class Graph {
 public:
  Graph(cudnnHandle_t handle, const ConvolutionGraph& convolution);

  // What a heuristic advises, best first; nothing where cuDNN cannot compute the graph.
  std::vector<Engine> engines(cudnnBackendHeurMode_t heuristic) const;

 private:
  std::vector<Descriptor> operations_;
  Descriptor graph_;
  bool supported_ = false;
};

class EnginePlan {
 public:
  // Nothing where the engine cannot do it after all.
  static std::optional<EnginePlan> build(cudnnHandle_t handle, Engine engine);

  const Engine& engine() const { return engine_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Queued on the handle's stream. The workspace has workspace_bytes().
  cudnnStatus_t run(cudnnHandle_t handle, const Operands& operands, void* workspace);

 private:
  EnginePlan() = default;

  Engine engine_;
  Descriptor plan_;
  std::int64_t workspace_bytes_ = 0;
  // A pack of pointers cannot be changed, so it is made anew when the operands are not these.
  Descriptor pack_;
  Operands packed_;
};

}  // namespace tandem::cuda::dnn
