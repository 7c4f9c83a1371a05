// --profile: where the time of an iteration goes, and that measuring changes nothing.
#include "train/profiler.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "base/error.h"
#include "dist/block.h"
#include "dist/strategies.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/small_mlp.h"
#include "train/check_options.h"
#include "train/checkpoint.h"
#include "train/profile_file.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// While it lives, the clock of this thread stands still, except when told to go on.
class HandClock {
 public:
  HandClock() { Clock::simulated = &now_; }
  ~HandClock() { Clock::simulated = nullptr; }
  void pass(double seconds) { now_ += from_seconds(seconds); }

 private:
  Clock::time_point now_;
};

// A strategy's hooks, which take long.
struct Slow : Hooks {
  explicit Slow(HandClock& with) : clock(with) {}
  void before_use(Parameter&) override { ++calls, clock.pass(1000); }
  void on_grad_ready(Parameter&) override { ++calls, clock.pass(1000); }
  bool needs_before_use() const override { return true; }
  bool wants_ready_events() const override { return true; }
  HandClock& clock;
  int calls = 0;
};

// Parameters with the indices 0, 1, …
struct Some {
  explicit Some(std::int64_t count, std::int64_t fixed = -1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Role role = i == fixed ? Role::fixed : Role::trained;
      owned.push_back(std::make_unique<Parameter>(Shape{i + 1}, Parameter::Make(), role));
      owned.back()->index = i;
    }
  }
  Parameter& operator[](std::size_t i) { return *owned[i]; }
  std::vector<std::unique_ptr<Parameter>> owned;
};

// Of the small net.
void check_whole(const Profile& p) {
  REQUIRE(p.tensors.size() == 4);
  const char* names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
  const std::int64_t elements[] = {784 * 20, 20, 20 * 10, 10};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(p.tensors[i].name == names[i]);
    CHECK(p.tensors[i].elements == elements[i]);
    CHECK(p.tensors[i].forward_s >= 0);
    CHECK(p.tensors[i].backward_s >= 0);
  }
  CHECK(p.forward_s() > 0);
  CHECK(p.backward_s() > 0);
  CHECK(p.net == "Small MLP");
  CHECK(!p.spread.empty());
  CHECK(p.spread.size() <= 101);
  CHECK(p.spread.front() <= 1);
  CHECK(p.spread.back() >= 1);
}

}  // namespace

TEST_CASE("profiler: computing counts for the parameter that it belongs to, hooks for none") {
  HandClock clock;
  Slow hooks(clock);
  Profiler profiler(hooks);
  CHECK(profiler.needs_before_use());
  CHECK(profiler.wants_ready_events());
  Some p(3);
  for (int i = 0; i < 3; ++i) {
    profiler.begin_iteration();
    clock.pass(0.5);  // data
    profiler.pause();
    clock.pass(1000);  // before_step
    profiler.resume();
    clock.pass(0.25);  // before the first parameter
    profiler.before_use(p[0]);
    clock.pass(i == 1 ? 3 : 1);
    profiler.before_use(p[1]);
    clock.pass(2);
    profiler.before_use(p[0]);  // again
    clock.pass(3);
    profiler.before_use(p[2]);
    clock.pass(4);
    profiler.end_forward();
    clock.pass(5);
    profiler.on_grad_ready(p[2]);
    clock.pass(6);
    profiler.on_grad_ready(p[1]);
    clock.pass(7);
    profiler.on_grad_ready(p[0]);
    clock.pass(0.125);
    profiler.end_iteration();
    profiler.before_use(p[1]);  // a test
  }
  CHECK(hooks.calls == 3 * 8);
  const ComputeProfile measured = profiler.measured();
  REQUIRE(measured.tensors.size() == 3);
  const double forward[] = {1.75, 5, 4}, backward[] = {7.125, 6, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(measured.tensors[i].parameter == static_cast<std::int64_t>(i));
    CHECK(measured.tensors[i].forward_s == doctest::Approx(forward[i]));
    CHECK(measured.tensors[i].backward_s == doctest::Approx(backward[i]));
  }
  CHECK(measured.mean_s == doctest::Approx(28.875 + 2.0 / 3));
  REQUIRE(measured.iterations_s.size() == 3);
  CHECK(measured.iterations_s[1] == doctest::Approx(30.875));
  profiler.restart();
  CHECK(profiler.measured().tensors.empty());
}

TEST_CASE("profiler: a fixed parameter and another order of backward keep the sum") {
  HandClock clock;
  Slow hooks(clock);
  Profiler profiler(hooks);
  Some p(4, 0);
  profiler.begin_iteration();
  for (const std::size_t i : {0, 2, 1, 3}) {  // 0 is fixed
    clock.pass(1);
    profiler.before_use(p[i]);
  }
  profiler.end_forward();
  for (const std::size_t i : {1, 3, 2}) {  // not 3, 1, 2
    clock.pass(1);
    profiler.on_grad_ready(p[i]);
  }
  profiler.end_iteration();
  const ComputeProfile measured = profiler.measured();
  REQUIRE(measured.tensors.size() == 3);
  const std::int64_t order[] = {2, 1, 3};
  const double forward[] = {3, 1, 0}, backward[] = {1, 0, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(measured.tensors[i].parameter == order[i]);
    CHECK(measured.tensors[i].forward_s == doctest::Approx(forward[i]));
    CHECK(measured.tensors[i].backward_s == doctest::Approx(backward[i]));
  }
  CHECK(measured.mean_s == doctest::Approx(7));
}

TEST_CASE("profiler: a long run keeps few iterations, evenly over the run") {
  HandClock clock;
  Hooks hooks;
  Profiler profiler(hooks);
  Some p(1);
  constexpr int kIterations = 10'000;
  for (int i = 1; i <= kIterations; ++i) {
    profiler.begin_iteration();
    profiler.before_use(p[0]);
    clock.pass(i);
    profiler.end_forward();
    profiler.on_grad_ready(p[0]);
    profiler.end_iteration();
  }
  const ComputeProfile measured = profiler.measured();
  CHECK(measured.iterations_s.size() < 1000);
  CHECK(measured.iterations_s.size() > 400);
  CHECK(measured.mean_s == doctest::Approx((kIterations + 1) / 2.0));
  CHECK(measured.tensors[0].forward_s == doctest::Approx(kIterations / 2.0).epsilon(0.01));
}

TEST_CASE("measured compressor: it passes everything on and counts it") {
  for (const std::string& name : compressor_names()) {
    CAPTURE(name);
    const auto plain = make_compressor(name);
    MeasuredCompressor measured(*plain);
    CHECK(measured.name() == name);
    CHECK(measured.packing() == plain->packing());
    std::vector<float> values(3 * kBlock + 5, 0.25F), back(values.size());
    const std::size_t size = plain->bytes(std::ssize(values));
    CHECK(measured.bytes(std::ssize(values)) == size);
    std::vector<std::byte> a(size), b(size), sum(size), expected(size);
    measured.compress(values, a);
    plain->compress(values, expected);
    CHECK(a == expected);
    measured.copy(a, b);
    CHECK(a == b);
    measured.decompress(b, back);
    std::vector<float> expected_back(values.size());
    plain->decompress(b, expected_back);
    CHECK(back == expected_back);
    measured.add(a, values, sum);
    plain->add(a, values, expected);
    CHECK(sum == expected);
    const std::span<const std::byte> block = std::span(a).first(plain->bytes(kBlock));
    measured.add_packed(block, block, kBlock, sum);
    CHECK(measured.finite(values));
    values[7] = std::nanf("");
    CHECK_FALSE(measured.finite(values));

    const auto all = static_cast<double>(values.size());
    const HostWork work = measured.work();
    CHECK(work.compress.elements == all);
    CHECK(work.decompress.elements == all);
    CHECK(work.add.elements == all + kBlock);
    CHECK(work.check.elements == 2 * all);
    // Bytes are counted as parts of whole blocks.
    const auto blocks = static_cast<double>(size) / static_cast<double>(plain->bytes(kBlock));
    CHECK(work.copy.elements == doctest::Approx(blocks * kBlock));
    measured.restart();
    CHECK(measured.work().add.elements == 0);
    CHECK(measured.work().add.per_element() == 0);
    CHECK(measure_host_work(*plain).add.per_element() > 0);
  }
}

TEST_CASE("profile: a run writes all parameters and all of its computing, with the same weights") {
  const TemporaryFolder folder;
  for (const StrategyInfo& algo : all_strategies()) {
    if (algo.asynchronous()) continue;  // refused
    CAPTURE(algo.name);
    TrainOptions o = short_run(algo.name, algo.distributed() ? 3 : 1, 20);
    if (algo.distributed()) o.compress = "quant8";
    const std::string hash = train(small_mlp_on_digits(), o).weights_hash;
    o.profile = folder / algo.name;
    const Summary s = train(small_mlp_on_digits(), o);
    CHECK(s.weights_hash == hash);
    const Profile p = read_profile(o.profile);
    check_whole(p);
    CHECK(p.elements() == s.parameters);
    CHECK(p.batch == (algo.distributed() ? 17 : 50));
    CHECK(p.source.starts_with(fmt::format("test --algo {} --workers ", algo.name)));
    const HostCost& cost = p.host.at(o.compress);
    for (const double c :
         {cost.check, cost.compress, cost.decompress, cost.add, cost.copy, cost.update})
      CHECK((c > 0 && c < 1e-6));
  }
}

TEST_CASE("profile: its times add up to the spans of computing") {
  const TemporaryFolder folder;
  TrainOptions o = short_run("d-sync", 2, 40);
  o.profile = folder / "p";
  const Summary s = train(mlp_on_digits(), o);
  const Profile p = read_profile(o.profile);
  double spans = 0;
  for (const RankReport& rank : s.ranks)
    spans += rank.compute(SpanKind::data) + rank.compute(SpanKind::forward) +
             rank.compute(SpanKind::backward);
  spans /= 2 * static_cast<double>(s.timed());
  CHECK(p.forward_s() + p.backward_s() == doctest::Approx(spans).epsilon(0.2));
  CHECK(p.elements() == s.parameters);
  CHECK(p.net == "test");
}

TEST_CASE("profile: after a resume it has the iterations since then") {
  const TemporaryFolder folder;
  TrainOptions o = short_run("d-sync", 2, 12);
  o.checkpoint = folder / "checkpoints";
  o.checkpoint_every = 11;
  const std::string hash = train(small_mlp_on_digits(), o).weights_hash;
  o.resume = checkpoint_folder(o.checkpoint, 11);
  o.checkpoint = "";
  o.profile = folder / "p";
  CHECK(train(small_mlp_on_digits(), o).weights_hash ==
        hash);  // a checkpoint does not know --profile
  const Profile p = read_profile(o.profile);
  check_whole(p);
  CHECK(p.spread.size() == 2);  // one iteration of two workers
}

TEST_CASE("profile: it is refused where nothing can be measured, and where another file is") {
  const TemporaryFolder folder;
  const auto refusal = [](const TrainOptions& o) {
    return message_of<UserError>([&] { train(small_mlp_on_digits(), o); });
  };
  TrainOptions o = short_run("single", 1);
  o.profile = folder / "p";
  o.device = DeviceKind::cuda;
  CHECK(refusal(o) ==
        "--profile needs --device cpu: it cannot see when a GPU finishes a parameter");
  o.device = DeviceKind::cpu;
  o.iterations = o.epochs = 0;
  CHECK(refusal(o) == "--profile needs iterations to time; --epochs 0 has none");
  o = short_run("single", 1);
  o.profile = folder.path();
  CHECK(refusal(o) == fmt::format("--profile: {} is a folder", folder.path().string()));
  o.profile = o.trace = folder / "p";
  CHECK(refusal(o) ==
        fmt::format("--trace and --profile would write to the same file {}", o.trace));
  CHECK_FALSE(std::filesystem::exists(folder / "p"));
}
