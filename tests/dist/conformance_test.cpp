// Checks that every algorithm in the table of dist/strategies.cpp does what its family guarantees.
// A new algorithm is covered by its entry.
#include "tests/dist/conformance.h"

#include <limits>
#include <map>
#include <tuple>

#include "base/random.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("conformance: entries of the table are complete and consistent") {
  std::set<std::string> names, labels;
  for (const StrategyInfo& algo : all_strategies()) {
    CAPTURE(algo.name);
    CHECK(names.insert(algo.name).second);
    CHECK(!algo.help.empty());
    REQUIRE((algo.make != nullptr));
    CHECK((algo.rows.label.empty() || labels.insert(algo.rows.label).second));
    for (const std::string& compress : algo.rows.compressors) CHECK(make_compressor(compress));
    CHECK((algo.make_server != nullptr) == algo.has_option("--servers"));
    for (const StrategyOption& own : algo.options) {
      CAPTURE(own.name);
      CHECK(own.name.starts_with("--"));
      CHECK(!own.help.empty());
      CHECK(own.least <= own.value);
      CHECK(own.value < own.most);
      CHECK((own.choices.empty() || own.most == std::ssize(own.choices) - 1));
      // Algorithms that share an option mean the same by it.
      const auto shared = std::ranges::find(strategy_options(), own.name, &StrategyOption::name);
      CHECK(shared->help == own.help);
      CHECK(shared->value == own.value);
    }
  }
  for (const int workers : {1, 2}) CHECK(default_strategy(workers).distributed() == (workers > 1));
  CHECK(message_of<UserError>([] { strategy_named("magic"); }) == "--algo magic is not known");
}

TEST_CASE(
    "conformance: all workers end with the same weights on all devices; synchronous "
    "algorithms with d-sync's") {
  std::vector<Weights> on_cpu;  // of the same job; the CPU comes first
  std::map<std::tuple<std::string, bool, int, std::int64_t>, std::vector<Weights>> references;
  for_all_jobs(
      {1, 13, 4099},
      [&](const Job& job) {
        const auto weights = run(job);
        for (const Weights& of_one : weights) CHECK(same(of_one, weights[0]));
        if (job.device == cpu)
          on_cpu = weights;
        else if (!job.races() && job.repeats())
          CHECK(same(weights, on_cpu));
        if (job.algo->family != Family::synchronous && job.algo->family != Family::alone) return;
        // What nodes add first has other bits (node_sum_test.cpp).
        if (job.ranks_per_node() > 1 && job.workers > 1) return;
        // One worker without compression has the bits of one that is alone.
        const bool plain = job.workers == 1 && job.compress == "none";
        if (!job.algo->distributed() && !plain) return;
        const auto codec = parse_compression(job.compress);
        if (codec && !codec->info->by_block && job.algo->name != "sync-easgd") return;
        auto& reference = references[{job.compress, plain, job.workers, job.count}];
        if (reference.empty())
          reference = run({.algo = &default_strategy(plain ? 1 : 2),
                           .compress = job.compress,
                           .workers = job.workers,
                           .count = job.count});
        CHECK(same(weights, reference));
      },
      true);
}

TEST_CASE("conformance: in virtual time, a run has the same bits and ends at the same nanosecond" *
          doctest::skip(!has_virtual_time())) {
  for_all_jobs({4099}, [&](Job job) {
    if (!job.repeats() || (job.workers != 1 && job.workers != 3)) return;
    job.on_threads = true;
    auto expected = run(job);
    job.link = "1gbe";
    Clock::time_point ends[2];
    for (Clock::time_point& end : ends)
      in_virtual_time([&] {
        CHECK(same(run(job), expected));
        end = Clock::now();
      });
    CHECK(ends[0] == ends[1]);
    if (job.ranks() > 1) CHECK(ends[0] > Clock::time_point{});
  });
}

TEST_CASE("conformance: a run that is saved, or loaded again, continues to the same bits") {
  Random random(18);
  for_all_jobs({13}, [&](Job job) {
    if (!job.repeats() || (job.races() && !has_virtual_time())) return;
    for (int i = 0; i < 2; ++i)
      job.saves.insert(1 + static_cast<std::int64_t>(random.below(kIterations)));
    // If workers race, pauses change the run: all runs have them, whether they save or not.
    const auto uninterrupted = run(job);
    for (const Saving saving : {Saving::and_going_on, Saving::and_loading}) {
      job.saving = saving;
      CHECK(same(run(job), uninterrupted));
    }
  });
}

TEST_CASE("conformance: all workers test the same weights, and testing changes nothing") {
  Random random(20);
  for_all_jobs({13}, [&](Job job) {
    const auto untested = run(job);
    for (int i = 0; i < 3; ++i)
      job.tests.insert(1 + static_cast<std::int64_t>(random.below(kIterations)));
    const auto tested = run(job);
    for (std::size_t worker = 0; worker < tested.size(); ++worker) {
      const bool has_tested = !job.asynchronous() || worker == 0;
      REQUIRE(tested[worker].size() == (has_tested ? job.tests.size() : 0) + 1);
      if (has_tested) CHECK(same(tested[worker], tested[0]));
      CHECK(same_bits(tested[worker].back(), tested[0].back()));
      if (!job.races() && job.repeats())
        CHECK(same_bits(tested[worker].back(), untested[worker].back()));
    }
  });
}

TEST_CASE("conformance: a rank that fails ends the job, and its reason is reported") {
  Random random(19);
  for_all_jobs({13}, [&](Job job) {
    if (job.ranks() == 1) return;
    const auto failing = static_cast<int>(random.below(static_cast<std::uint64_t>(job.workers)));
    const std::int64_t at = 1 + static_cast<std::int64_t>(random.below(kIterations));
    job.meddle = [=](Net&, int rank, std::int64_t t) {
      if (rank == failing && t == at) throw SystemError("a fault");
    };
    CHECK(message_of<SystemError>([&] { run(job); }) == fmt::format("rank {}: a fault", failing));
  });
}

TEST_CASE("conformance: a gradient that is not finite is reported with its rank and parameter") {
  for_all_jobs({13}, [](Job job) {
    if (job.workers < 2) return;
    job.meddle = [](Net& net, int rank, std::int64_t t) {
      if (t == 9 && rank == 1)  // with a plan
        net.b.gradient.span<float>()[1] = -std::numeric_limits<float>::infinity();
    };
    const std::string message = message_of<SystemError>([&] { run(job); });
    CHECK(message.starts_with(
        "rank 1: training diverged: the gradient of b is not finite in iteration "));
    if (job.algo->family == Family::synchronous)
      CHECK(message.ends_with(" in iteration 9; try a lower --lr"));
  });
}
