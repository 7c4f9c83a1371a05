// The part of cuDNN's graph API that convolutions need: what to compute (Graph), cuDNN's
// implementations of it (Engine), and one of them ready to run (EnginePlan).
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

// cuDNN's universal handle. Its attributes are set one by one. Then it is finalized, and from then
// on read-only.
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

  // Writes at most `room` values and returns how many there are.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t room, void* values) const;
  std::int64_t get_int64(cudnnBackendAttributeName_t name) const;
  // Reads an attribute that consists of descriptors of this type.
  std::vector<Descriptor> get_all(cudnnBackendAttributeName_t name,
                                  cudnnBackendDescriptorType_t type) const;

  void finalize();
  bool finalize_if_supported();  // false if cuDNN does not support this

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
  bool bias = false, relu = false;  // in the same pass as forward; the bias has y's type
};

// Device memory of a graph's tensors or their gradients. `bias` is null if the graph has none.
struct Operands {
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  void* bias = nullptr;

  friend bool operator==(const Operands&, const Operands&) = default;
};

// An implementation of a graph.
struct Engine {
  Descriptor config;
  std::string name;    // the engine's number and settings; unique
  unsigned notes = 0;  // bit i is set if cuDNN's numerical note i applies
  bool compiled_at_runtime = false;

  bool has(cudnnBackendNumericalNote_t note) const { return (notes >> note & 1) != 0; }
};

class Graph {
 public:
  Graph(cudnnHandle_t handle, const ConvolutionGraph& convolution);

  // The engines that a heuristic proposes, best first; empty if cuDNN cannot compute the graph.
  std::vector<Engine> engines(cudnnBackendHeurMode_t heuristic) const;

 private:
  std::vector<Descriptor> operations_;
  Descriptor graph_;
  bool supported_ = false;
};

class EnginePlan {
 public:
  // Nothing if the engine does not support the graph after all.
  static std::optional<EnginePlan> build(cudnnHandle_t handle, Engine engine);

  const Engine& engine() const { return engine_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Queues on the handle's stream. The workspace must have workspace_bytes().
  cudnnStatus_t run(cudnnHandle_t handle, const Operands& operands, void* workspace);

 private:
  EnginePlan() = default;

  Engine engine_;
  Descriptor plan_;
  std::int64_t workspace_bytes_ = 0;
  // cuDNN's pack of pointers is immutable. It is rebuilt when the operands differ from these.
  Descriptor pack_;
  Operands packed_;
};

}  // namespace tandem::cuda::dnn
