#include "dist/schedule/measure.h"

#include <algorithm>
#include <utility>

#include "base/phantom_memory.h"
#include "base/random.h"
#include "base/statistics.h"
#include "dist/block.h"
#include "dist/codecs/codec.h"
#include "dist/gradient_sum.h"
#include "dist/transport/collectives.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// Ranks get different numbers. In a simulation there are none.
void fill_at_random(const Tensor& values, int rank) {
  if (is_phantom(values.raw())) return;
  std::vector<float> numbers(static_cast<std::size_t>(values.count()));
  Random random = Random(1, Purpose::rounding).split(static_cast<std::uint64_t>(rank));
  for (float& number : numbers) number = static_cast<float>(random.uniform(-1, 1));
  values.backend().copy(Tensor::from(numbers, values.shape(), values.device()), values);
}

// The median of a few rounds, as a mean over the workers. Few rounds if they take long.
double time_of_sum(const StrategyContext& c, GradientSum& sum, const Tensor& values) {
  constexpr int kRounds = 8;
  constexpr double kEnough = 0.1;
  Communication& communication = c.communication;
  std::vector<double> rounds;
  double all = 0;
  // What some codecs send, such as DGC, depends on the round before.
  const int least = c.codec ? 2 : 1;
  for (int round = 0; round < least || (round < kRounds && all < kEnough); ++round) {
    if (c.codec) {  // how long encoding takes may depend on the values, and on those before
      fill_at_random(values, communication.transport().rank());
      communication.call([&] { c.codec->begin(-1 - round); });
    }
    Gradient gradient{0, values, c.parameters.device().backend().record_event()};
    if (gradient.ready) gradient.ready->wait();
    communication.call([&] { start_together(communication.transport(), c.workers); });
    const auto begin = Clock::now();
    sum.begin(gradient);
    communication.call([&] { sum(gradient); });
    if (gradient.ready) gradient.ready->wait();
    double seconds[] = {seconds_between(begin, Clock::now()) / c.workers};
    communication.call([&] { sum_over_ranks(communication.transport(), c.workers, seconds); });
    if (round == 1) rounds.clear();  // the first round allocates memory
    rounds.push_back(seconds[0]);
    all += seconds[0];
  }
  return median(rounds);
}

// A line for sums of up to 4 MB, and another from there to the longest, if that is longer.
SumCost cost_of(std::vector<SumTime> times) {
  constexpr double kLong = 512 * kBlock * sizeof(float);
  const SumTime longest = times.back();
  if (longest.bytes <= kLong) return fit(times);
  times.pop_back();
  SumCost cost = fit(times);
  cost.long_bytes = times.back().bytes;
  cost.long_b =
      std::max(0.0, longest.seconds - cost(cost.long_bytes)) / (longest.bytes - cost.long_bytes);
  return cost;
}

// Returns measure(). Its sums belong to no iteration: their bytes are not counted, and a codec does
// not remember them. The gradient is 0 before and afterwards, also the padding between parameters.
template <class F>
auto in_trial(const StrategyContext& c, const F& measure) {
  const Tensor& gradients = c.parameters.gradients();
  Transport& transport = c.communication.transport();
  gradients.backend().fill(gradients, 0);
  Snapshot remembered;
  bool counted = false;
  c.communication.call([&] {
    counted = transport.count_bytes(false);
    if (c.codec) remembered.save(*c.codec);
  });
  auto measured = measure();
  c.communication.call([&] {
    transport.count_bytes(counted);
    if (c.codec) remembered.load(*c.codec);
  });
  gradients.backend().fill(gradients, 0);
  return measured;
}

}  // namespace

void StageTimes::reached(const EventPtr& event) {
  ++noted_;
  if (event)
    communication_.post(
        times_, [event, left_out = left_out_] { return event->wait(), Clock::now() - left_out; });
  else
    times_.put(Clock::now() - left_out_);
}

void StageTimes::end_step() {
  auto& seconds = seconds_.emplace_back();
  for (; noted_ > 0; --noted_) seconds.push_back(seconds_between(begin_, times_.take()));
}

std::vector<double> StageTimes::of_slowest(int workers) {
  auto iterations = std::exchange(seconds_, {});
  const std::size_t stages = iterations.front().size();
  std::vector<std::vector<double>> slowest(stages);
  for (auto& of_workers : iterations) {
    communication_.call([&] { max_over_ranks(communication_.transport(), workers, of_workers); });
    for (std::size_t stage = 0; stage < stages; ++stage)
      slowest[stage].push_back(of_workers[stage]);
  }
  std::vector<double> result;
  for (std::vector<double>& of_stage : slowest) result.push_back(median(std::move(of_stage)));
  return result;
}

SumCost measure_sum_cost(const StrategyContext& c) {
  return in_trial(c, [&] {
    const Tensor& gradients = c.parameters.gradients();
    std::vector<SumTime> times;
    std::int64_t last = 0;
    for (const std::int64_t blocks : {1, 8, 64, 512, 8192}) {
      const std::int64_t count = std::min(blocks * kBlock, gradients.count());
      if (count == std::exchange(last, count)) break;
      GradientSum sum(c, {.count = count}, true);
      times.push_back({static_cast<double>(count) * sizeof(float),
                       time_of_sum(c, sum, gradients.view(0, {count}))});
    }
    SumCost cost = cost_of(std::move(times));
    GradientSum all(c);
    cost.all = time_of_sum(c, all, gradients);
    // Short sums may fit into buffers of the network, which then drain while nothing is measured.
    // Messages in a row cannot be faster than one for all.
    const double least = (cost.all - cost.a) / static_cast<double>(gradients.bytes());
    cost.b = std::max(cost.b, least);
    cost.long_b = std::max(cost.long_b, least);
    return cost;
  });
}

}  // namespace tandem
