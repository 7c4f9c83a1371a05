#include "simulate/simulation.h"

#include <deque>
#include <functional>

#include "base/virtual_time.h"
#include "dist/launch.h"
#include "dist/transport/link.h"
#include "dist/transport/stall.h"
#include "simulate/folded.h"
#include "simulate/phantom_device.h"

namespace tandem {
namespace {

constexpr double kStallTimeout = 10'000;  // seconds

// One rank's net, which takes time and computes nothing.
class PhantomNet {
 public:
  PhantomNet(const Profile& profile, const HostCost& cost)
      : profile_(profile), parameters_(make(profile)), set(named(), phantom_device(cost)) {}

  void step(Strategy& hooks) {
    VirtualTime& time = *VirtualTime::here();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      hooks.before_use(parameters_[i]);
      time.work(from_seconds(profile_.tensors[i].forward_s));
    }
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      time.work(from_seconds(profile_.tensors[i].backward_s));
      hooks.on_grad_ready(parameters_[i]);
    }
  }

 private:
  static std::deque<Parameter> make(const Profile& profile) {
    std::deque<Parameter> parameters;
    for (const Profile::Tensor& tensor : profile.tensors)
      parameters.emplace_back(Shape{tensor.elements}, Parameter::Make());
    return parameters;
  }
  std::vector<ParameterSet::Named> named() {
    std::vector<ParameterSet::Named> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      all.push_back({profile_.tensors[i].name, &parameters_[i]});
    return all;
  }

  const Profile& profile_;
  std::deque<Parameter> parameters_;

 public:
  ParameterSet set;
  Sgd optimizer{set, {.schedule = {.base = 0.1}, .momentum = 0.9}};
  Spans spans;
};

// A rank that waits for a message which a rank like it does not send at this time is Stalled.
void as_one(const Simulation& simulation, const std::function<void(Communication&)>& rank) {
  const UserError unlike("{}: one rank cannot stand for all, because they do not all do the same",
                         simulation.algo);
  if (strategy_named(simulation.algo).servers(simulation.options) > 0) throw unlike;
  Communication communication([&] {
    auto transport = folded_transport(simulation.workers);
    transport->set_stall_timeout(kStallTimeout);
    return slow_down(std::move(transport), simulation.link);
  });
  try {
    rank(communication);
  } catch (const Stalled&) {
    throw unlike;
  }
}

}  // namespace

std::vector<double> simulate(const Profile& profile, const Simulation& simulation) {
  const StrategyInfo& algo = strategy_named(simulation.algo);
  const auto compressor = without_content(make_compressor(simulation.compress), simulation.host);
  std::vector<double> ends;
  const auto rank = [&](Communication& communication) {
    PhantomNet net(profile, simulation.host);
    const StrategyContext context{.parameters = net.set,
                                  .optimizer = net.optimizer,
                                  .spans = net.spans,
                                  .communication = communication,
                                  .compressor = *compressor,
                                  .workers = simulation.workers,
                                  .options = simulation.options};
    const int number = communication.transport().rank();
    if (number >= simulation.workers) {
      communication.call([&] { algo.make_server(context)->serve(1, simulation.iterations); });
      return;
    }
    const auto strategy = make_strategy(algo.name, context);
    try {
      for (std::int64_t t = 1; t <= simulation.iterations; ++t) {
        strategy->before_step(t);
        net.step(*strategy);
        strategy->after_backward(t);
        if (number == 0) ends.push_back(seconds_of(Clock::now().time_since_epoch()));
      }
      strategy->finish();
    } catch (const std::exception& e) {
      communication.stop(e.what());
      throw;
    }
  };
  if (simulation.ranks == SimulatedRanks::all)
    in_virtual_time([&] {
      run_on_ranks({.app = "simulate",
                    .ranks = simulation.workers + algo.servers(simulation.options),
                    .link = simulation.link,
                    .stall_timeout_s = kStallTimeout},
                   rank);
    });
  else
    in_virtual_time([&] { as_one(simulation, rank); });
  return ends;
}

}  // namespace tandem
