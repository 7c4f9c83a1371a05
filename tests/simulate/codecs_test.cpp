// Codecs in simulations: they send the bytes of real runs, and take the time that the profile says.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "dist/codecs/codec_work.h"
#include "tests/simulate/runs.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kTensors = 4;
constexpr std::int64_t kBlocks = 60, kElements = kBlocks * kBlock / kTensors;
constexpr double kForward = 1e-3, kBackward = 2e-3;

Profile profile_with(const std::string& compress, const HostCost& cost = {}) {
  Profile profile = equal_tensors(kTensors, kElements, kForward, kBackward);
  profile.host[compress] = cost;
  return profile;
}

Simulation simulation_of(const std::string& compress, int workers,
                         const std::string& algo = "d-sync") {
  return {.algo = algo,
          .compress = compress,
          .workers = workers,
          .link = parse_link("1gbe"),
          .iterations = 8};
}

// That a worker sends per iteration, of equal shares.
std::int64_t sent(const SimulatedRun& run) {
  const auto iterations = std::ssize(run.ends);
  CHECK(run.ranks[0].bytes_sent % iterations == 0);
  return run.ranks[0].bytes_sent / iterations;
}

}  // namespace

TEST_CASE("simulated codecs: workers send the bytes of encoded blocks" *
          doctest::skip(!has_virtual_time())) {
  struct Expected {
    const char* compress;
    std::int64_t sent, returned;  // of a block
  };
  for (const auto& [compress, to_owner, back] : {Expected{"terngrad", 516, 2052},
                                                 {"qsgd:4", 4 + 1024, 2052},
                                                 {"onebit", 264, 264},
                                                 {"randomk:0.01", 80, 80}})
    for (const int workers : {2, 4, 5}) {
      CAPTURE(compress);
      CAPTURE(workers);
      const auto run = simulate(profile_with(compress), simulation_of(compress, workers));
      CHECK(sent(run) == kBlocks / workers * (workers - 1) * (to_owner + back));
    }
}

TEST_CASE("simulated codecs: sums of top-k have the places of all workers") {
  // 20 of 2048 elements: 2 bytes, and 6 for each.
  const auto topk = *parse_compression("topk:0.01");
  CHECK(sizes_of_block(topk, 1, kBlock).sent == 122);
  CHECK(sizes_of_block(topk, 1, kBlock).returned == 122);
  const auto of_four = sizes_of_block(topk, 4, kBlock);
  CHECK(of_four.sent == 122);
  CHECK(of_four.returned <= 2 + 4 * 120);
  CHECK(of_four.returned >= 2 + 4 * 120 - 60);  // few places are those of two workers
  // With many workers, all elements are shorter without places.
  CHECK(sizes_of_block(topk, 2000, kBlock).returned == 2 + 4 * kBlock);
  const auto dgc = sizes_of_block(*parse_compression("dgc:0.01"), 4, kBlock);
  CHECK(dgc.sent >= 2 + 6 * 10);
  CHECK(dgc.sent <= 2 + 6 * 40);
}

TEST_CASE("simulated codecs: encoding and decoding take the time that the profile says" *
          doctest::skip(!has_virtual_time())) {
  const HostCost cost{
      .compress = 1e-8, .decompress = 2e-8, .add = 3e-8, .update = 0, .encode_sum = 4e-8};
  constexpr int kWorkers = 4;
  Simulation s = simulation_of("onebit", kWorkers);
  s.link = {};  // sending takes no time
  const auto run = simulate(profile_with("onebit", cost), s);
  const double elements = kBlocks * kBlock;
  const double share = elements / kWorkers;
  const double expected = kForward + kBackward + elements * cost.compress + elements * cost.add +
                          share * cost.encode_sum + elements * cost.decompress;
  // Every call is rounded to a nanosecond: at most four per block, and two per tensor.
  CHECK(std::abs(run.mean_s() - expected) <= 1e-9 * (4 * kBlocks + 2 * kTensors));
}

TEST_CASE("simulated codecs: all algorithms that can use them do, and repeat to the nanosecond" *
          doctest::skip(!has_virtual_time())) {
  for (const StrategyInfo& algo : all_strategies())
    for (const std::string compress : {"topk:0.01", "terngrad", "dgc"}) {
      Simulation s = simulation_of(compress, 4, algo.name);
      if (algo.has_option("--via")) s.options["--via"] = 2;
      try {
        algo.require_possible(s.workers, compress, s.options);
      } catch (const UserError&) {
        continue;
      }
      CAPTURE(algo.name);
      CAPTURE(compress);
      const Profile profile = profile_with(compress, {.compress = 1e-9, .add = 1e-9});
      const auto run = simulate(profile, s);
      CHECK(run.mean_s() > 0);
      CHECK(simulate(profile, s).ends == run.ends);
    }
}

TEST_CASE("simulated codecs: one rank that stands for all takes the same time" *
          doctest::skip(!has_virtual_time())) {
  for (const std::string compress : {"onebit", "topk:0.01"})
    for (const int workers : {2, 4}) {
      CAPTURE(compress);
      CAPTURE(workers);
      const Profile profile = profile_with(compress, {.compress = 1e-9, .add = 1e-9});
      Simulation s = simulation_of(compress, workers);
      const auto all = simulate(profile, s).ends;
      s.one_for_all = true;
      CHECK(simulate(profile, s).ends == all);
    }
}

TEST_CASE("simulated codecs: what encodes matrices is refused") {
  CHECK(message_of<UserError>(
            [] { simulate(profile_with("none"), simulation_of("powersgd:2", 2)); }) ==
        "--compress powersgd:2 cannot be simulated: it encodes matrices, and profiles do not know "
        "the shapes of tensors");
}

TEST_CASE("simulated codecs: work on blocks is measured") {
  for (const CodecInfo& codec : all_codecs())
    for (const std::string& text : codec.examples) {
      CAPTURE(text);
      const auto choice = parse_compression(text);
      REQUIRE(choice.has_value());
      CHECK(choice->info == &codec);
      if (!codec.by_block) continue;
      const CodecWork work = measure_codec_work(*choice);
      for (const double each : {work.encode, work.add, work.encode_sum, work.decode_sum}) {
        CHECK(each > 0);
        CHECK(each < 1e-3);
      }
    }
}
