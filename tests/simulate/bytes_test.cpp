// Table I of Ko et al.: how many bytes a round sends, in which each of N workers makes one
// iteration. Transports count them; the formulas must agree exactly.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "tests/simulate/runs.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// A multiple of 4·5 and 8, so that SSP and EASGD end with a whole period.
constexpr std::int64_t kRounds = 40;
constexpr std::int64_t kElements = 3 * 7 * kBlock + 48;  // tensors are padded to 16 elements
constexpr std::int64_t kM = 2 * kElements * static_cast<std::int64_t>(sizeof(float));  // bytes

// By all ranks in kRounds rounds. All workers are equally fast.
std::int64_t sent(const std::string& algo, int workers, const StrategyOptions& options = {},
                  LinkSpeed link = {}) {
  const SimulatedRun run = simulate(
      equal_tensors(2, kElements, 1e-3, 2e-3),
      {.algo = algo, .options = options, .workers = workers, .link = link, .iterations = kRounds});
  std::int64_t bytes = 0;
  for (const RankReport& rank : run.ranks) bytes += rank.bytes_sent;
  // A simulation of synchronous workers ends when iterations repeat.
  const auto rounds = std::ssize(run.ends);
  CHECK(bytes * kRounds % rounds == 0);
  return bytes * kRounds / rounds;
}

// That workers send their weights by the random numbers of a run.
std::int64_t letters(int workers, double p) {
  std::int64_t count = 0;
  for (int rank = 0; rank < workers; ++rank)
    for (std::int64_t t = 1; t <= kRounds; ++t)
      count += Random(1, Purpose::gossip)
                   .split(static_cast<std::uint64_t>(rank))
                   .split(static_cast<std::uint64_t>(t))
                   .uniform() < p;
  return count;
}

}  // namespace

TEST_CASE("bytes: with servers, a round sends what Table I of Ko et al. says" *
          doctest::skip(!has_virtual_time())) {
  const LinkSpeed link = parse_link("10gbe");
  for (const std::int64_t n : {1, 2, 4, 7})
    for (const std::int64_t servers : {1, 2, 3}) {
      CAPTURE(n);
      CAPTURE(servers);
      const auto sent_with = [&](const std::string& algo, StrategyOptions options) {
        options["--servers"] = servers;
        return sent(algo, static_cast<int>(n), options, link);
      };
      CHECK(sent_with("ps-sync", {}) == 2 * kM * n * kRounds);
      CHECK(sent_with("asp", {}) == 2 * kM * n * kRounds);
      for (const std::int64_t period : {1, 4, 8})
        CHECK(sent_with("easgd", {{"--period", period}}) == 2 * kM * n * kRounds / period);
    }
}

// Without a link, the pushes of equally fast workers are all there when the first one pulls, so
// every copy is as new as it can be. Over a link, the first of them gets an older one, and pulls
// again earlier.
TEST_CASE("bytes: equal ssp workers pull in every iteration number s+1" *
          doctest::skip(!has_virtual_time())) {
  for (const int n : {1, 2, 4, 7})
    for (const std::int64_t s : {1, 3, 9}) {
      CAPTURE(n);
      CAPTURE(s);
      const StrategyOptions options = {{"--staleness", s}};
      // The first iteration that must pull is s+2, because those before it begin with weights that
      // are new enough. So the last period ends without a pull.
      const std::int64_t pulls = (kRounds - 1) / (s + 1);
      CHECK(sent("ssp", n, options) == kM * n * (kRounds + pulls));
      CHECK(sent("ssp", n, options, parse_link("10gbe")) >= kM * n * (kRounds + pulls));
    }
}

TEST_CASE("bytes: without servers, a round sends what Table I of Ko et al. says" *
          doctest::skip(!has_virtual_time())) {
  const LinkSpeed link = parse_link("10gbe");
  for (const int n : {2, 4, 6}) {
    CAPTURE(n);
    // The table has 2MN, which counts a worker's part twice that stays where it is.
    CHECK(sent("d-sync", n, {}, link) == 2 * kM * (n - 1) * kRounds);
    CHECK(sent("local-sgd", n, {{"--period", 8}}, link) == 2 * kM * (n - 1) * kRounds / 8);
    CHECK(sent("ad-psgd", n, {}, link) == kM * n * kRounds);
    for (const double p : {1.0, 0.3, 0.01}) {
      CAPTURE(p);
      const auto parts = static_cast<std::int64_t>(p * 1e6 + 0.5);
      CHECK(sent("gosgd", n, {{"--gossip-p", parts}}, link) == kM * letters(n, p));
    }
    CHECK(letters(n, 1) == n * kRounds);
  }
}
