#include <doctest/doctest.h>

#include "dist/launch.h"
#include "dist/schedule/direct_sum.h"
#include "dist/schedule/priorities.h"
#include "dist/schedule/ring_sums.h"
#include "tests/dist/gradients.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<float> zeros(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

}  // namespace

TEST_CASE("p3: slices cover the stages, and are as urgent as the first use of what is in them") {
  Parameter a({kBlock / 2}, zeros(kBlock / 2)), b({5 * kBlock}, zeros(5 * kBlock)),
      c({3 * kBlock + 7}, zeros(3 * kBlock + 7));
  const ParameterSet set({{"a", &a}, {"b", &b}, {"c", &c}}, cpu_device());
  const auto stages = stages_of(set, {&c, &b, &a});
  for (const std::int64_t size : {std::int64_t{1}, kBlock, 2 * kBlock, 1000 * kBlock}) {
    CAPTURE(size);
    // Forward uses c before b.
    const auto slices = slices_of(stages, {&a, &c, &b}, size);
    std::size_t next = 0;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      std::int64_t first = stages[stage].range.first_block, count = 0;
      for (; next < slices.size() && slices[next].stage == stage; ++next) {
        const BlockRange& range = slices[next].range;
        CHECK(range.first_block == first);
        CHECK(range.count > 0);
        CHECK(range.blocks() <= std::max<std::int64_t>(1, size / kBlock));
        first += range.blocks();
        count += range.count;
        const std::int64_t begin = range.first_block * kBlock, end = begin + range.count;
        const std::int64_t rank = begin < a.shape.count() ? 0 : end > c.offset ? 1 : 2;
        CHECK(slices[next].rank == rank);
      }
      CHECK(count == stages[stage].range.count);
    }
    CHECK(next == slices.size());
  }
}

TEST_CASE("p3: the baseline gives small layers to one adder, and divides large ones") {
  const std::vector<Stage> stages{{.range = {.count = 999'999, .first_block = 600}},
                                  {.range = {.count = 600 * kBlock}},
                                  {.range = {.count = 5}}};
  const auto slices = whole_stages(stages, 4);
  REQUIRE(slices.size() == 3);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    CHECK(slices[i].stage == i);
    CHECK(slices[i].range.count == stages[i].range.count);
    CHECK(slices[i].rank == 0);
  }
  CHECK(slices[0].adder == 0);
  CHECK(slices[1].adder == Slice::kAll);
  CHECK(slices[2].adder == 2 * 9973 % 4);
}

// Both workers hand over a long stage and then a short one that is more urgent. On the slow link
// the long one takes a quarter of a second.
template <class MakeSums>
void check_overtaking(const MakeSums& make_sums) {
  constexpr std::int64_t kSlices = 60, kCount = (kSlices + 1) * kBlock;
  const auto work = [&](Communication& communication) {
    const int rank = communication.transport().rank();
    Parameter p({kCount}, gradient(kCount, rank));
    ParameterSet set({{"p", &p}}, cpu_device());
    Sgd sgd(set, {});
    Spans spans;
    const auto compressor = make_compressor("none");
    const StrategyContext context{.parameters = set,
                                  .optimizer = sgd,
                                  .spans = spans,
                                  .communication = communication,
                                  .compressor = *compressor,
                                  .workers = 2};
    std::vector<Slice> slices;
    for (std::int64_t i = 0; i < kSlices; ++i)
      slices.push_back({.stage = 0, .range = {.count = kBlock, .first_block = 1 + i}, .rank = 1});
    slices.push_back({.stage = 1, .range = {.count = kBlock}, .rank = 0});
    const std::unique_ptr<SliceSums> sums = make_sums(context, slices);
    for (const std::int64_t t : {1, 2}) {
      p.gradient.backend().copy(p.value, p.gradient);
      sums->begin(0, t, nullptr);
      sums->begin(1, t, nullptr);
      CHECK(sums->take().stage == 1);
      CHECK(sums->take().stage == 0);
      CHECK(sums->take().stage == SliceSums::Summed::kNone);
      const auto mine = gradient(kCount, rank), other = gradient(kCount, 1 - rank);
      const auto sum = p.gradient.span<float>();
      for (std::size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == mine[i] + other[i]);
    }
  };
  run_on_ranks({.app = "test", .ranks = 2, .link = {.bytes_per_s = 2e6}}, work);
}

TEST_CASE("p3: an urgent stage overtakes one that was begun before it") {
  check_overtaking([](const StrategyContext& context, const std::vector<Slice>& slices) {
    const std::size_t slice = kBlock * sizeof(float), all = slices.size() * slice;
    CHECK(window_of(context, slices, {.b = 5e-6}) == slice);
    CHECK(window_of(context, slices, {.b = 0}) == all);
    const std::size_t window = window_of(context, slices, {.b = 5e-7});  // of this link
    CHECK(window > slice);
    CHECK(window < 2 * slice);  // it carries a slice in 4.1 ms
    return std::make_unique<DirectSum>(context, slices, Adders{.count = 2}, window);
  });
}

TEST_CASE("p3: an urgent stage overtakes on the ring, too") {
  check_overtaking([](const StrategyContext& context, const std::vector<Slice>& slices) {
    return std::make_unique<RingSums>(context, slices);
  });
}

// Fig. 4 of the paper: three layers, forward and backward take 1 unit each, a sum takes 2.
TEST_CASE("p3: the predicted time of the paper's example") {
  const ComputeTimes compute{
      .uses = {{0, 2}, {1, 1}, {2, 0}}, .ready = {4, 5, 6}, .update_of = {0, 0, 0}};
  const auto predicted = [&](const std::vector<std::int64_t>& ranks, int slices) {
    std::vector<Journey> journeys;
    for (std::size_t stage = 0; stage < 3; ++stage)
      for (int i = 0; i < slices; ++i)
        journeys.push_back({.stage = stage, .rank = ranks[stage], .occupies = 2.0 / slices});
    return iteration_with_priorities(compute, journeys);
  };
  CHECK(predicted({0, 0, 0}, 1) == doctest::Approx(10));  // first come, first served
  CHECK(predicted({2, 1, 0}, 1) == doctest::Approx(9));   // priorities halve the first delay
  CHECK(predicted({2, 1, 0}, 2) == doctest::Approx(8));   // slices, too

  // The delay of a sum, two lanes, and updates.
  CHECK(iteration_with_priorities(compute, {{.stage = 0, .occupies = 2},
                                            {.stage = 1, .occupies = 2, .lane = 1},
                                            {.stage = 2, .occupies = 2, .delay = 1, .lane = 1}}) ==
        doctest::Approx(10));
  const ComputeTimes updates{.uses = {{0, 0}, {1, 0}}, .ready = {3}, .update_of = {0.5}};
  CHECK(iteration_with_priorities(updates, {{.stage = 0, .occupies = 2}}) == doctest::Approx(5.5));
}

TEST_CASE("p3: how long a slice occupies links, by who adds it") {
  const SumCost cost{.a = 6, .b = 3};  // a ring of 4 workers: 6 latencies, 1.5·M on each link
  const std::vector<Slice> divided{{.range = {.count = 1}}},
      one{{.range = {.count = 1}, .adder = 2}};
  const double bytes = sizeof(float);
  const auto only = [](const std::vector<Journey>& all) {
    REQUIRE(all.size() == 1);
    return all[0];
  };
  const Journey ring = only(journeys_of(divided, cost, Via::ring, 4, 4));
  CHECK(ring.occupies == doctest::Approx(6 + 3 * bytes));
  CHECK(ring.delay == 0);
  const Journey direct = only(journeys_of(divided, cost, Via::direct, 4, 4));
  CHECK(direct.occupies == doctest::Approx(3 * bytes));
  CHECK(direct.delay == doctest::Approx(2));  // 2 latencies
  // M on a worker's link; with two servers, twice as much on theirs.
  CHECK(only(journeys_of(divided, cost, Via::servers, 4, 8)).occupies ==
        doctest::Approx(2 * bytes));
  CHECK(only(journeys_of(divided, cost, Via::servers, 4, 2)).occupies ==
        doctest::Approx(4 * bytes));
  // A whole layer to one of eight servers: on its link 4·M, on the worker's M.
  const auto by_one = journeys_of(one, cost, Via::servers, 4, 8);
  REQUIRE(by_one.size() == 2);
  CHECK(by_one[0].lane == 8);
  CHECK(by_one[0].occupies == doctest::Approx(2 * bytes));
  CHECK(by_one[1].lane == 2);
  CHECK(by_one[1].occupies == doctest::Approx(8 * bytes));
  // The one that adds receives from three others, and then sends as much.
  const Journey whole = only(journeys_of(one, cost, Via::direct, 4, 4));
  CHECK(whole.lane == 2);
  CHECK(whole.occupies == doctest::Approx(6 * bytes));
  CHECK(whole.delay == doctest::Approx(4 + 6 * bytes));
}
