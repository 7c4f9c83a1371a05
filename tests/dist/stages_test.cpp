#include "dist/schedule/stages.h"

#include <doctest/doctest.h>

#include <memory>

#include "base/random.h"
#include "tensor/cpu/cpu_backend.h"

using namespace tandem;

TEST_CASE("stages: cover the gradient from its end, and wait for all of their parameters") {
  Random random(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Parameter>> parameters;
    std::vector<ParameterSet::Named> named;
    for (std::size_t i = 0; i < 1 + random.below(9); ++i) {
      const auto count = static_cast<std::int64_t>(1 + random.below(9000));
      parameters.push_back(std::make_unique<Parameter>(
          Shape{count}, std::vector<float>(static_cast<std::size_t>(count))));
      named.push_back({std::to_string(i), parameters.back().get()});
    }
    const ParameterSet set(named, cpu_device());
    std::vector<const Parameter*> ready(set.trained().rbegin(), set.trained().rend());
    for (std::size_t i = ready.size(); i > 1 && round % 2; --i)
      std::swap(ready[i - 1], ready[random.below(i)]);

    std::size_t done = 0;  // parameters that are ready when a stage is complete
    std::int64_t end = set.values().count();
    for (const Stage& stage : stages_of(set, ready)) {
      const std::int64_t first = stage.range.first_block * kBlock;
      CHECK(first + stage.range.count == end);
      CHECK(stage.range.count > 0);
      end = first;
      REQUIRE(done < ready.size());
      do ++done;
      while (ready[done - 1] != stage.last && done < ready.size());
      CHECK(ready[done - 1] == stage.last);
      for (std::size_t i = done; i < ready.size(); ++i)
        CHECK((ready[i]->offset + ready[i]->shape.count() <= first ||
               ready[i]->offset >= first + stage.range.count ||
               ready[i]->offset >= set.values().count()));
    }
    CHECK(end == 0);
  }
}

TEST_CASE("stages: large parameters that finish from the last to the first have one each") {
  Parameter a({3 * kBlock}, std::vector<float>(3 * kBlock)),
      b({2 * kBlock + 1}, std::vector<float>(2 * kBlock + 1)),
      c({4 * kBlock}, std::vector<float>(4 * kBlock));
  const ParameterSet set({{"a", &a}, {"b", &b}, {"c", &c}}, cpu_device());
  const auto stages = stages_of(set, {&c, &b, &a});
  REQUIRE(stages.size() == 3);
  // A block that two parameters share belongs to the one that is finished later.
  CHECK(stages[0].range.first_block == 6);
  CHECK(stages[1].range.first_block == 3);
  CHECK(stages[2].range.first_block == 0);
  CHECK(stages[0].last == &c);
  // The first parameter in the gradient is finished first: nothing can be sent before all are.
  CHECK(stages_of(set, {&a, &b, &c}).size() == 1);
}
