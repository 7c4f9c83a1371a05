#include "base/names.h"

#include <doctest/doctest.h>

#include "autograd/sgd.h"
#include "tensor/precision.h"

using namespace tandem;

// Every value goes to its name and back, and nothing else has a name.
template <class E>
void check_names(std::initializer_list<std::pair<E, const char*>> values) {
  std::vector<std::string> names;
  for (const auto& [value, name] : values) {
    CHECK(std::string(to_string(value)) == name);
    CHECK(from_string<E>(name) == value);
    names.push_back(name);
  }
  CHECK(names_of<E>() == names);
  CHECK_FALSE(from_string<E>(""));
  CHECK_FALSE(from_string<E>("?"));
  CHECK(std::string(to_string(static_cast<E>(values.size()))) == "?");
  CHECK(std::string(to_string(static_cast<E>(-1))) == "?");
}

TEST_CASE("names: values and names of the options' enumerations belong together") {
  check_names<DeviceKind>({{DeviceKind::cpu, "cpu"}, {DeviceKind::cuda, "cuda"}});
  check_names<Precision>(
      {{Precision::fp32, "fp32"}, {Precision::tf32, "tf32"}, {Precision::bf16, "bf16"}});
  check_names<Schedule::Kind>({{Schedule::Kind::constant, "constant"},
                               {Schedule::Kind::step, "step"},
                               {Schedule::Kind::cosine, "cosine"}});
}
