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
    state("share", share);
    state("times", times);
    state("name", name);
  }
  Tensor values = Tensor::from(std::vector<float>{1, 2, 3}, {3}, cpu_device());
  std::int64_t number = 4;
  double share = 0.1;
  std::vector<double> times = {1, 2.5};
  std::string name = "a name";
};

}  // namespace

TEST_CASE("state: saved values are loaded into the same memory") {
  Part part;
  Snapshot saved;
  saved.save(part);
  saved.wait();
  const Tensor view = part.values;
  part.values.backend().fill(part.values, 9);
  part.number = 5;
  part.share = 0.2;
  part.times.clear();
  part.name = "another";
  saved.load(part);
  CHECK(view.to_host<float>() == std::vector<float>{1, 2, 3});
  CHECK(part.number == 4);
  CHECK(part.share == 0.1);
  CHECK(part.times == std::vector<double>{1, 2.5});
  CHECK(part.name == "a name");
  saved.require_all_loaded();
}

TEST_CASE(
    "state: duplicate names, and values that are missing, different or left over, are refused") {
  struct Other {
    void visit(State& state) { state("other", number); }
    std::int64_t number = 0;
  } other;
  Part part;
  Snapshot saved;
  saved.save(part);
  CHECK(message_of<std::logic_error>([&] { saved.save(part); }) ==
        "two parts of a state are named values");
  CHECK(message_of<UserError>([&] { saved.load(other); }) == "the saved state has no \"other\"");
  CHECK(message_of<UserError>([&] { saved.require_all_loaded(); }) ==
        "the saved state has \"name\", which this run does not use");
  part.values = Tensor::zeros({2}, Dtype::f32, cpu_device());
  CHECK(message_of<UserError>([&] { saved.load(part); }) ==
        "the saved state has 12 bytes for \"values\", not 8");
  part.values = Tensor::zeros({3}, Dtype::i32, cpu_device());
  CHECK(message_of<UserError>([&] { saved.load(part); }) ==
        "the saved state has \"values\" as F32, not I32");
}
