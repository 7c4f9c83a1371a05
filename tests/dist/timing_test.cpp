#include <doctest/doctest.h>

#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "dist/timing/calibration.h"
#include "dist/timing/clock_offset.h"
#include "dist/timing/model.h"
#include "dist/timing/rank_report.h"
#include "tensor/cpu/cpu_backend.h"
#include "tests/dist/ranks.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("timing model: the paper's equations, computed by hand") {
  const NetworkCost c{.alpha = 1e-3, .beta = 1e-8, .gamma = 1e-9, .sync = 2e-3};
  const ComputeCost compute{.update = 1e-3, .forward = 4e-3, .backward = 5e-3};
  CHECK(compute.all() == doctest::Approx(10e-3));
  // p = 4, n = 4 MB: 6·1 ms + 1.5·4e6·1e-8 s + 0.75·4e6·1e-9 s + 2 ms
  CHECK(ring_time(c, 4, 4e6, 4e6) == doctest::Approx(6e-3 + 60e-3 + 3e-3 + 2e-3));
  // Compressed to a quarter, only what is on the wire gets less.
  CHECK(ring_time(c, 4, 4e6, 1e6) == doctest::Approx(6e-3 + 15e-3 + 3e-3 + 2e-3));
  // Eq. 6: L pieces pay latency and synchronisation L times.
  CHECK(ring_time_in_pieces(c, 4, 4e6, 4e6, 1) == doctest::Approx(ring_time(c, 4, 4e6, 4e6)));
  CHECK(ring_time_in_pieces(c, 4, 4e6, 4e6, 3) == doctest::Approx(18e-3 + 60e-3 + 3e-3 + 6e-3));
  // The example of docs/12-when-to-merge.md.
  const NetworkCost gbe{.alpha = 63e-6, .beta = 1 / 124.4e6, .gamma = 1 / 16678e6, .sync = 132e-6};
  const double mlp = 648'048 * 4;
  CHECK(ring_time(gbe, 4, mlp, mlp) == doctest::Approx(31.9e-3).epsilon(2e-3));
  CHECK(ring_time_in_pieces(gbe, 4, mlp, mlp, 6) == doctest::Approx(34.4e-3).epsilon(2e-3));
  // One worker sends nothing.
  CHECK(ring_time(c, 1, 4e6, 4e6) == doctest::Approx(2e-3));

  CHECK(sync_iteration(compute, 30e-3) == doctest::Approx(40e-3));           // Eq. 2
  CHECK(ideal_pipe_iteration(compute, 30e-3, 2) == doctest::Approx(20e-3));  // Eq. 3
  CHECK(pipe_iteration(compute, 30e-3) == doctest::Approx(30e-3));           // Eq. 4
  CHECK(pipe_iteration(compute, 3e-3) == doctest::Approx(10e-3));
  // A server carries what four workers send; with two servers, half of it each.
  CHECK(server_time(c, 4, 1, 4e6, 4e6) == doctest::Approx(2e-3 + 160e-3 + 16e-3));
  CHECK(server_time(c, 4, 2, 4e6, 4e6) == doctest::Approx(2e-3 + 80e-3 + 8e-3));
  CHECK(server_time(c, 1, 4, 4e6, 4e6) == doctest::Approx(2e-3 + 40e-3 + 1e-3));
}

namespace {

// A device whose clock the test turns.
class ClockDevice : public CpuBackend {
 public:
  ClockDevice() : CpuBackend(1) {}
  EventPtr record_event(Event::Timing) override { return std::make_shared<Moment>(now); }
  double now = 0;

 private:
  struct Moment : Event {
    explicit Moment(double t) : time(t) {}
    void wait() const override {}
    bool passed() const override { return true; }
    double seconds_since(const Event& earlier) const override {
      return time - static_cast<const Moment&>(earlier).time;
    }
    double time;
  };
};

}  // namespace

TEST_CASE("spans: a device times its own spans, and gaps are waits") {
  ClockDevice device;
  Spans spans;
  spans.keep_all();
  spans.follow(device);
  const auto span = [&](SpanKind kind, double pause, double seconds) {
    device.now += pause;
    const Spans::Scope scope(spans, kind);
    device.now += seconds;
  };
  spans.set_iteration(1);
  span(SpanKind::forward, 0, 2);
  span(SpanKind::backward, 0.5, 3);
  spans.set_iteration(2);
  span(SpanKind::update, 4, 1);
  CHECK(spans.all().empty());  // nothing is known before it is done

  spans.settle(1);
  CHECK(spans.seconds(SpanKind::forward) == doctest::Approx(2));
  CHECK(spans.seconds(SpanKind::backward) == doctest::Approx(3));
  CHECK(spans.seconds(SpanKind::wait) == doctest::Approx(0.5));
  CHECK(spans.seconds(SpanKind::update) == 0);
  spans.settle(2);
  CHECK(spans.seconds(SpanKind::wait) == doctest::Approx(4.5));
  CHECK(spans.seconds(SpanKind::update) == doctest::Approx(1));

  device.now += 100;  // a test, say
  spans.follow(device);
  spans.set_iteration(3);
  span(SpanKind::forward, 0, 1);
  spans.settle(3);
  CHECK(spans.seconds(SpanKind::wait) == doctest::Approx(4.5));
  CHECK(spans.seconds(SpanKind::forward) == doctest::Approx(3));
  REQUIRE(spans.all().size() == 6);
  CHECK(spans.all().back().iteration == 3);
}

TEST_CASE("spans: an update or a wait within forward interrupts it on a device, too") {
  ClockDevice device;
  Spans spans;
  spans.follow(device);
  spans.set_iteration(1);
  {
    const Spans::Scope forward(spans, SpanKind::forward);
    device.now += 1;
    {
      const Spans::Scope wait(spans, SpanKind::wait);
      device.now += 10;
    }
    {
      const Spans::Scope update(spans, SpanKind::update);
      device.now += 100;
    }
    device.now += 1000;
  }
  spans.settle(1);
  CHECK(spans.seconds(SpanKind::forward) == doctest::Approx(1001));
  CHECK(spans.seconds(SpanKind::wait) == doctest::Approx(10));
  CHECK(spans.seconds(SpanKind::update) == doctest::Approx(100));
}

TEST_CASE("model: each algorithm has its own equation, and some have none") {
  ModelInput m{.workers = 4,
               .compute = {.update = 1, .forward = 2, .backward = 3},
               .network = {.beta = 1},
               .gradient_bytes = 8,
               .wire_bytes = 4};
  const auto predicted = [&m](const char* algo) {
    m.algo = algo;
    return predicted_iteration(m);
  };
  CHECK(predicted("ps-sync") == 6 + 4 * 8);
  m.options["--push"] = 1;  // during backward
  CHECK_FALSE(predicted("ps-sync"));
  CHECK(predicted("d-sync") == 6 + 1.5 * 4);
  CHECK(predicted("pipe-sgd") == 6);
  m.closed = 0.25;
  CHECK(predicted("pipe-sgd") == 0.25 * 12 + 0.75 * 6);
  m.options["--pipe-k"] = 1;
  CHECK(predicted("pipe-sgd") == 12);
  for (const char* other : {"single", "unheard-of", ""}) CHECK_FALSE(predicted(other));
  m.options["--aggregate"] = 1;  // nodes-first
  CHECK_FALSE(predicted("ps-sync"));
  m.ranks_per_node = 2;
  CHECK_FALSE(predicted("d-sync"));
}

TEST_CASE("spans: cold iterations are recorded but not counted") {
  ClockDevice device;
  Spans spans;
  spans.keep_all();
  spans.count_from(2);
  spans.follow(device);
  for (const int iteration : {1, 2}) {
    spans.set_iteration(iteration);
    const Spans::Scope scope(spans, SpanKind::forward);
    device.now += iteration;
  }
  spans.settle(2);
  CHECK(spans.all().size() == 2);
  CHECK(spans.seconds(SpanKind::forward) == doctest::Approx(2));
}

TEST_CASE("spans: the time of an inner span counts only for it, and events keep both") {
  Spans spans;
  spans.keep_all();
  spans.set_iteration(7);
  const auto spin = [](double seconds) {
    const auto end = Clock::now() + from_seconds(seconds);
    while (Clock::now() < end) {
    }
  };
  {
    const Spans::Scope outer(spans, SpanKind::communicate);
    spin(2e-3);
    {
      const Spans::Scope inner(spans, SpanKind::compress);
      spin(3e-3);
    }
  }
  CHECK(spans.seconds(SpanKind::compress) >= 3e-3);
  CHECK(spans.seconds(SpanKind::communicate) >= 2e-3);
  REQUIRE(spans.all().size() == 2);
  const Spans::Span &inner = spans.all()[0], &outer = spans.all()[1];
  CHECK(inner.kind == SpanKind::compress);
  CHECK(outer.kind == SpanKind::communicate);
  CHECK(inner.iteration == 7);
  CHECK(outer.begin <= inner.begin);
  CHECK(inner.end <= outer.end);
  CHECK(seconds_between(outer.begin, outer.end) ==
        doctest::Approx(spans.seconds(SpanKind::compress) + spans.seconds(SpanKind::communicate)));
}

TEST_CASE("rank reports: rank 0 receives what was measured, on its own clock") {
  Spans compute, communication;
  compute.keep_all();
  { const Spans::Scope span(compute, SpanKind::forward); }
  { const Spans::Scope span(communication, SpanKind::compress); }
  RankReport report{.rank = 3, .server = true, .bytes_sent = 1LL << 40};
  report.take(compute, communication, std::chrono::seconds(5));
  const RankReport read = rank_report_from(to_bytes(report));
  CHECK(read.rank == 3);
  CHECK(read.server);
  CHECK(read.bytes_sent == 1LL << 40);
  CHECK(read.compute_s == report.compute_s);
  CHECK(read.communication(SpanKind::compress) == communication.seconds(SpanKind::compress));
  REQUIRE(read.compute_spans.size() == 1);
  CHECK(read.compute_spans[0].begin == compute.all()[0].begin + std::chrono::seconds(5));
  CHECK(read.communication_spans.empty());
}

TEST_CASE("calibration: with helpers, and if a GPU compresses") {
  const auto compressor = make_quant8();
  on_ranks(2, [&](Transport& t) {
    ThreadPool helpers(2);
    t.set_helpers(&helpers);
    const bool on_host = false;
    CHECK(calibrate(t, 2, *compressor, on_host).gamma > 0);
    CHECK(calibrate(t, 1, *compressor, on_host).gamma > 0);
  });
}

// Only from below: a loaded machine can take longer, but nothing makes a link faster.
TEST_CASE("calibration: all ranks agree, and nothing is faster than the link") {
  const auto compressor = make_trunc16();
  std::vector<NetworkCost> costs(3);
  on_ranks(
      3,
      [&](Transport& t) {
        CHECK(clock_offset(t) == Clock::duration{});  // one machine, one clock
        const bool on_host = true;
        costs[static_cast<std::size_t>(t.rank())] = calibrate(t, 3, *compressor, on_host);
      },
      parse_link("400mbit/200us"));
  for (const NetworkCost& c : costs) {
    CHECK(c.alpha >= 200e-6);
    CHECK(c.alpha == costs[0].alpha);
    CHECK(c.beta == costs[0].beta);
    CHECK(c.beta > 0);
    CHECK(c.gamma > 0);
    CHECK(c.sync >= 400e-6);
  }
}
