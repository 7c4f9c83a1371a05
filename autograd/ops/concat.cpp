#include <algorithm>
#include <array>
#include <memory_resource>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "autograd/ops/gradients.h"

namespace tandem {

// y = [a b …]      da = the first columns of dy, db = the next ones, …
Var concat(Tape& tape, std::span<const Var> parts) {
  require(!parts.empty(), "there is nothing to concatenate");
  const Shape& first = parts[0].value.shape();
  require(first.rank() >= 1, "numbers have no dimension along which to concatenate");
  const auto without_last = [](const Shape& s) {
    return Shape(s.sizes().first(s.sizes().size() - 1));
  };
  std::pmr::vector<Tensor> values(tape.memory());
  std::pmr::vector<std::pair<int, std::int64_t>> inputs(tape.memory());  // nodes and columns
  std::int64_t columns = 0;
  int wanted = Var::kConstant;
  for (const Var& part : parts) {
    const Shape& shape = part.value.shape();
    require(shape.rank() == first.rank() && without_last(shape) == without_last(first),
            "{} and {} cannot be concatenated: only the last sizes may differ", first, shape);
    values.push_back(part.value);
    inputs.emplace_back(part.node, shape[-1]);
    columns += shape[-1];
    if (part.has_gradient()) wanted = part.node;
  }

  std::array<std::int64_t, Shape::kMaxRank> sizes;
  std::ranges::copy(first.sizes(), sizes.begin());
  sizes[static_cast<std::size_t>(first.rank() - 1)] = columns;
  Tensor y = Tensor::empty(Shape(std::span(sizes).first(first.sizes().size())), values[0].dtype(),
                           values[0].device());
  y.backend().concat(values, y);
  return tape.record(std::move(y), {wanted},
                     [inputs = std::move(inputs)](Tape& t, const Tensor& dy) {
                       std::pmr::vector<Backend::ConcatPart> into(t.memory());
                       for (const auto& [node, count] : inputs)
                         into.push_back({count, gradient_into(t, node)});
                       dy.backend().concat_gradient(dy, into);
                     });
}

}  // namespace tandem
