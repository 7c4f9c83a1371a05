#include "train/slow_worker.h"

#include <doctest/doctest.h>

#include "autograd/parameter.h"
#include "base/virtual_time.h"
#include "tests/train/small_mlp.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;
using namespace std::chrono_literals;

namespace {

// Forward and backward of two parameters, 4 ms each, in virtual time. The strategy waits for 10 ms.
struct Step : Hooks {
  Parameter a{{1}, std::vector<float>(1)}, b{{1}, std::vector<float>(1)};
  std::vector<Clock::duration> reached;

  void before_use(Parameter&) override { VirtualTime::here()->work(10ms); }
  void on_grad_ready(Parameter&) override { reached.push_back(Clock::now().time_since_epoch()); }

  void run(SlowWorker& slow) {
    VirtualTime& time = *VirtualTime::here();
    slow.begin_step();
    for (Parameter* p : {&a, &b}) {
      slow.before_use(*p);
      time.work(4ms);
    }
    for (Parameter* p : {&b, &a}) {
      time.work(4ms);
      slow.on_grad_ready(*p);
    }
    slow.end_step();
    reached.push_back(Clock::now().time_since_epoch());
  }
};

}  // namespace

TEST_CASE("slow worker: it reaches every parameter later, and waits no longer" *
          doctest::skip(!has_virtual_time())) {
  for (const double speed : {1.0, 0.5, 0.25}) {
    CAPTURE(speed);
    Step step;
    in_virtual_time([&] {
      SlowWorker slow(step, speed);
      slow.before_use(step.a);  // of a test
      step.run(slow);
    });
    const auto at = [&](auto computing) {
      return 30ms + std::chrono::duration_cast<Clock::duration>(computing / speed);
    };
    CHECK(step.reached == std::vector<Clock::duration>{at(12ms), at(16ms), at(16ms)});
  }
}

TEST_CASE("slow worker: the others wait for it, and the weights are the same") {
  TrainOptions o = short_run("d-sync", 2, 30);
  const Summary alike = train(small_mlp_on_digits(), o);
  o.slow_rank = "1=0.2";
  const Summary slow = train(small_mlp_on_digits(), o);
  CHECK(slow.weights_hash == alike.weights_hash);
  CHECK(slow.ranks[1].compute(SpanKind::backward) > 2 * slow.ranks[0].compute(SpanKind::backward));
}

TEST_CASE("slow worker: gossip waits for it only after the last iteration") {
  for (const std::string algo : {"gosgd", "ad-psgd"}) {
    CAPTURE(algo);
    TrainOptions o = short_run(algo, 2, 10);
    o.slow_rank = "1=0.002";  // so slow that pauses of a busy machine do not matter
    const Summary s = train(small_mlp_on_digits(), o);
    CHECK(s.ranks[0].compute(SpanKind::wait) < s.ranks[1].compute(SpanKind::backward) / 2);
  }
}
