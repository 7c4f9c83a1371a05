// Reverse-mode differentiation on a linear tape.
//
// Forward appends one node per operation to a vector; backward walks it once, from the end to the
// beginning. The order is topological by construction and the same on every rank. Using a
// parameter appends a leaf. All operations that read the leaf come later on the tape, so when the
// walk reaches it, its gradient is complete; when it reaches the parameter's last remaining leaf,
// on_grad_ready fires. That is right after the backward of the layer that owns the parameter, while
// the layers below still have to be computed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <memory_resource>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/parameter.h"
#include "tensor/backend.h"

namespace tandem {

// A value in forward. `node` is its place on the tape, if it has a gradient.
struct Var {
  Tensor value;
  int node = kConstant;
  bool rectified = false;  // comes from a ReLU: see Tape::rectify

  static constexpr int kConstant = -1;
  bool has_gradient() const { return node != kConstant; }
};

// Where a backward function writes the gradient of an input.
struct GradientSlot {
  Tensor tensor;
  bool accumulate;  // add to it: another use of the value has contributed already
};

class Tape {
 public:
  enum class Mode { training, inference };  // inference records nothing

  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Begins a step with an empty tape. `random` feeds the step's random operations.
  void begin(Mode mode, const Random& random = Random());
  bool training() const { return mode_ == Mode::training; }
  StepRandom next_random() { return {random_, random_streams_++}; }

  // The receiver of the hook calls; nullptr for none. It must outlive its use.
  void set_hooks(Hooks* hooks) { hooks_ = hooks; }

  // A parameter as a value. Calls before_use.
  Var use(Parameter& parameter);

  // Appends an operation with result `value`. `backward(tape, dy)` is called once with the gradient
  // of the result and must fill gradient_slot() of every input that has one. If no input has a
  // gradient, nothing is recorded. If backward accepts (tape, dy, more), the gradient is dy + more,
  // or dy if `more` is undefined; see Backend::adds_in_parts.
  template <class Backward>
  Var record(Tensor value, std::initializer_list<int> inputs, Backward backward);

  // Memory that later steps use again, for what an operation keeps until backward.
  std::pmr::memory_resource* memory() { return &pool_; }

  // For backward functions: the slot of the value at `node`, or nothing if its gradient is not
  // needed. Asking counts as contributing: the caller must write to the slot.
  std::optional<GradientSlot> gradient_slot(int node);

  // Adds a contribution that already exists, such as dy itself. The tape may share it instead of
  // copying it, so nobody may write to it afterwards.
  void add_gradient(int node, const Tensor& contribution);

  // A ReLU passes no gradient where its result is 0. An operation that has already zeroed its
  // contribution there calls rectify(). If all have, rectified() is true inside the ReLU's backward
  // function, which then skips its mask.
  void rectify(int node);
  bool rectified() const { return rectified_; }

  // The parameter whose layer forward or backward has reached; null before the first.
  const Parameter* last_used() const { return last_used_; }

  // Walks the tape back from a one-element loss. Afterwards the flat gradient holds the gradients
  // of the parameters, and the tape is empty. Throws if a trained parameter of the set was not
  // reached, and names it.
  void backward(const Var& loss, const ParameterSet& parameters);

 private:
  struct Operation {
    virtual ~Operation() = default;
    virtual void backward(Tape& tape, const Tensor& dy, const Tensor& more) = 0;
  };
  template <class Backward>
  static constexpr bool kTakesParts =
      std::is_invocable_v<Backward, Tape&, const Tensor&, const Tensor&>;
  template <class Backward>
  struct OperationOf final : Operation {
    explicit OperationOf(Backward f) : function(std::move(f)) {}
    void backward(Tape& tape, const Tensor& dy, const Tensor& more) override {
      if constexpr (kTakesParts<Backward>)
        function(tape, dy, more);
      else
        function(tape, dy);
    }
    Backward function;
  };
  // Operations live in a pool, because every step makes and destroys them.
  struct Recycle {
    std::pmr::memory_resource* pool;
    std::size_t bytes, alignment;
    void operator()(Operation* operation) const {
      operation->~Operation();
      pool->deallocate(operation, bytes, alignment);
    }
  };
  using OperationPtr = std::unique_ptr<Operation, Recycle>;

  struct Node {
    Shape shape;  // of the value, which itself is not kept alive by the tape
    Dtype dtype;
    Tensor gradient = {};  // undefined until the first contribution; unused by leaves
    Tensor more = {};      // the second contribution, if the operation takes two parts
    bool takes_parts = false;
    int not_rectified = 0;           // contributions, see rectify()
    Parameter* parameter = nullptr;  // set for leaves
    OperationPtr operation{nullptr, {}};
  };

  // The state of a parameter in this step.
  struct Use {
    int pending = 0;            // leaves on the tape that the walk has not reached
    bool has_gradient = false;  // its gradient holds a first contribution of this step
    bool ready = false;
  };

  int append(Node node);
  Node& node_at(int index);
  Use& use_of(const Parameter& parameter);

  // Declared before the nodes that live in it.
  std::pmr::unsynchronized_pool_resource pool_;
  std::vector<Node> nodes_;
  std::vector<Use> uses_;         // by the parameter's index
  std::optional<Device> device_;  // of the gradients: that of the loss
  Tensor one_;                    // the gradient of the loss, kept from step to step
  Mode mode_ = Mode::inference;
  Hooks* hooks_ = nullptr;
  bool rectified_ = false;
  const Parameter* last_used_ = nullptr;
  Random random_;
  std::uint64_t random_streams_ = 0;
};

template <class Backward>
Var Tape::record(Tensor value, std::initializer_list<int> inputs, Backward backward) {
  bool wanted = false;
  for (int input : inputs) wanted |= input != Var::kConstant;
  if (!wanted) return Var{std::move(value)};

  using Op = OperationOf<Backward>;
  Node node{value.shape(), value.dtype()};
  node.takes_parts = kTakesParts<Backward> && value.backend().adds_in_parts();
  void* memory = pool_.allocate(sizeof(Op), alignof(Op));
  node.operation =
      OperationPtr(new (memory) Op(std::move(backward)), Recycle{&pool_, sizeof(Op), alignof(Op)});
  return Var{std::move(value), append(std::move(node))};
}

}  // namespace tandem
