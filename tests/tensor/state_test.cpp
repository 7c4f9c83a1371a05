#include "tensor/state.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

struct Part {
  void visit(State& state) {
    state("values", values);
    state("number", number);
  }
  Tensor values = Tensor::from(std::vector<float>{1, 2, 3}, {3}, cpu_device());
  std::int64_t number = 4;
};

}  // namespace

TEST_CASE("state: saved values are loaded into the same memory") {
  Part part;
  MemoryState memory;
  memory.save(part);
  const Tensor view = part.values;
  part.values.backend().fill(part.values, 9);
  part.number = 5;
  memory.load(part);
  CHECK(view.to_host<float>() == std::vector<float>{1, 2, 3});
  CHECK(part.number == 4);
}

TEST_CASE("state: duplicate names and different sizes are refused") {
  struct Other {
    void visit(State& state) { state("other", number); }
    std::int64_t number = 0;
  } other;
  Part part;
  MemoryState memory;
  memory.save(part);
  CHECK(message_of<std::logic_error>([&] { memory.save(part); }) ==
        "two parts of a state are named values");
  CHECK(message_of<std::logic_error>([&] { memory.load(other); }) == "the state has no other");
  part.values = Tensor::zeros({2}, Dtype::f32, cpu_device());
  CHECK(message_of<std::logic_error>([&] { memory.load(part); }) ==
        "values was saved with 12 bytes, not 8");
}
