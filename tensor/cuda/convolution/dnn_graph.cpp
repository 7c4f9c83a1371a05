#include "tensor/cuda/convolution/dnn_graph.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tandem::cuda::dnn {

namespace {

// Ids of tensors within a graph. Tensors between two operations are never in memory.
enum Id : std::int64_t { kX = 1, kFilter, kY, kBias, kProduct, kBiased };

using Sizes = std::array<std::int64_t, 4>;

bool unsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnDataType_t data_type(Type type) {
  return type == Type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// cuDNN lists sizes in the order n, c, h, w. In memory the channels are innermost.
Descriptor tensor(Id id, Type type, const Sizes& nchw, bool in_memory = true) {
  const auto [n, c, h, w] = nchw;
  const Sizes strides = {h * w * c, 1, w * c, c};
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{id});
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(type));
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, nchw);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, !in_memory);
  d.finalize();
  return d;
}

Descriptor windows(const Convolution& o) {
  const std::array<std::int64_t, 2> stride = {o.stride.height, o.stride.width};
  const std::array<std::int64_t, 2> padding = {o.padding.height, o.padding.width};
  const std::array<std::int64_t, 2> dilation = {o.dilation, o.dilation};
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation);
  d.finalize();
  return d;
}

// The names of the operation's attributes depend on the direction.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, filter, y, alpha, beta;
};

ConvolutionNames names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::data_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::filter_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor convolve(Direction direction, const Descriptor& how, const Descriptor& x,
                    const Descriptor& filter, const Descriptor& y) {
  const ConvolutionNames names = names_of(direction);
  Descriptor d(names.type);
  d.set(names.convolution, how);
  d.set(names.x, x);
  d.set(names.filter, filter);
  d.set(names.y, y);
  d.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  d.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  d.finalize();
  return d;
}

Descriptor pointwise(cudnnPointwiseMode_t mode) {
  Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  d.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (mode == CUDNN_POINTWISE_RELU_FWD)
    d.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 0.0);
  d.finalize();
  return d;
}

// y = x + b, or y = relu(x) without b.
Descriptor pointwise_operation(const Descriptor& how, const Descriptor& x, const Descriptor* b,
                               const Descriptor& y) {
  Descriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  d.finalize();
  return d;
}

Engine engine_of(Descriptor config) {
  Engine result;
  auto engines = config.get_all(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const Descriptor& engine = engines.at(0);
  result.name = fmt::format("engine {}", engine.get_int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));

  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t note_count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                             CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), notes.data());
  for (std::int64_t i = 0; i < note_count; ++i) result.notes |= 1U << notes[i];

  std::array<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> behavior{};
  const std::int64_t behavior_count = engine.get(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, behavior.size(), behavior.data());
  for (std::int64_t i = 0; i < behavior_count; ++i)
    if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) result.compiled_at_runtime = true;

  for (const Descriptor& knob :
       config.get_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)) {
    cudnnBackendKnobType_t type{};
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    result.name += fmt::format(" k{}={}", static_cast<int>(type),
                               knob.get_int64(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  result.config = std::move(config);
  return result;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "creating a descriptor");
  descriptor_.reset(made);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(get(), name, type, count, values), "setting an attribute");
}

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             std::int64_t room, void* values) const {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, type, room, &count, values), "reading an attribute");
  return count;
}

std::int64_t Descriptor::get_int64(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::vector<Descriptor> Descriptor::get_all(cudnnBackendAttributeName_t name,
                                            cudnnBackendDescriptorType_t type) const {
  // cuDNN does not report how many settings an engine has, only how many it can have.
  const std::int64_t room = name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES
                                ? std::int64_t{CUDNN_KNOB_TYPE_COUNTS}
                                : get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<Descriptor> result;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < room; ++i) {
    result.emplace_back(type);
    raw.push_back(result.back().get());
  }
  if (room == 0) return result;
  const std::int64_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, raw.data());
  result.resize(static_cast<std::size_t>(std::min(room, count)));
  return result;
}

void Descriptor::finalize() { check(cudnnBackendFinalize(get()), "finishing a descriptor"); }

bool Descriptor::finalize_if_supported() {
  const cudnnStatus_t status = cudnnBackendFinalize(get());
  if (unsupported(status)) return false;
  check(status, "finishing a descriptor");
  return true;
}

Graph::Graph(cudnnHandle_t handle, const ConvolutionGraph& g)
    : graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  const Convolution& o = g.convolution;
  const Direction direction = g.direction;
  const auto type_of = [&](Direction written_by) {
    return direction == written_by ? g.result_type : g.type;
  };
  const Sizes y_sizes = {g.n, g.k, o.rows(g.h, g.r), o.columns(g.w, g.s)};
  const Type y_type = type_of(Direction::forward);
  const Descriptor x = tensor(kX, type_of(Direction::data_gradient), {g.n, g.c, g.h, g.w});
  const Descriptor filter =
      tensor(kFilter, type_of(Direction::filter_gradient), {g.k, g.c / o.groups, g.r, g.s});
  const Descriptor y = tensor(kY, y_type, y_sizes);
  const Descriptor how = windows(o);

  if (!g.bias && !g.relu) {
    operations_.push_back(convolve(direction, how, x, filter, y));
  } else {
    const Descriptor product = tensor(kProduct, Type::f32, y_sizes, false);
    operations_.push_back(convolve(direction, how, x, filter, product));
    const Descriptor bias = tensor(kBias, y_type, {1, g.k, 1, 1});
    const Descriptor biased = tensor(kBiased, Type::f32, y_sizes, false);
    if (g.bias)
      operations_.push_back(
          pointwise_operation(pointwise(CUDNN_POINTWISE_ADD), product, &bias, g.relu ? biased : y));
    if (g.relu)
      operations_.push_back(pointwise_operation(pointwise(CUDNN_POINTWISE_RELU_FWD),
                                                g.bias ? biased : product, nullptr, y));
  }

  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations_) raw.push_back(operation.get());
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             static_cast<std::int64_t>(raw.size()), raw.data());
  supported_ = graph_.finalize_if_supported();
}

std::vector<Engine> Graph::engines(cudnnBackendHeurMode_t heuristic) const {
  std::vector<Engine> result;
  if (!supported_) return result;
  Descriptor d(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  d.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  d.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, heuristic);
  if (!d.finalize_if_supported()) return result;
  for (Descriptor& config :
       d.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
    result.push_back(engine_of(std::move(config)));
  return result;
}

std::optional<EnginePlan> EnginePlan::build(cudnnHandle_t handle, Engine engine) {
  EnginePlan plan;
  plan.plan_ = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  plan.plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config);
  if (cudnnBackendFinalize(plan.plan_.get()) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  plan.engine_ = std::move(engine);
  plan.workspace_bytes_ = plan.plan_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return plan;
}

cudnnStatus_t EnginePlan::run(cudnnHandle_t handle, const Operands& operands, void* workspace) {
  if (!pack_.get() || operands != packed_) {
    const std::array<std::int64_t, 4> ids = {kX, kFilter, kY, kBias};
    const std::array<void*, 4> pointers = {operands.x, operands.filter, operands.y, operands.bias};
    const std::int64_t count = operands.bias ? 4 : 3;
    pack_ = Descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
    pack_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack_.finalize();
    packed_ = operands;
  }
  return cudnnBackendExecute(handle, plan_.get(), pack_.get());
}

}  // namespace tandem::cuda::dnn
