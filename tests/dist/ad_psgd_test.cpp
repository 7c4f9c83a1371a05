#include "dist/ad_psgd/ad_psgd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/dist/peers.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kCount = 48;  // elements; a multiple of 16 is not padded
constexpr Topology kTopologies[] = {Topology::ring, Topology::exponential, Topology::complete};

PeersJob ad_psgd(int workers, std::int64_t iterations, Topology topology = Topology::ring) {
  return {.algo = "ad-psgd",
          .options = {{"--topology", static_cast<std::int64_t>(topology)}},
          .workers = workers,
          .iterations = iterations,
          .start = [](int rank) { return gradient(kCount, rank); }};
}

using Weights = std::vector<std::vector<float>>;  // by worker

double mean_of(const Weights& weights, std::size_t i) {
  double sum = 0;
  for (const auto& of_one : weights) sum += static_cast<double>(of_one[i]);
  return sum / static_cast<double>(weights.size());
}
double spread_of(const Weights& weights, std::size_t i) {
  double most = 0;
  for (const auto& of_one : weights)
    most = std::max(most, std::abs(static_cast<double>(of_one[i]) - mean_of(weights, i)));
  return most;
}
Weights start_of(int workers) {
  Weights all;
  for (int rank = 0; rank < workers; ++rank) all.push_back(gradient(kCount, rank));
  return all;
}

}  // namespace

TEST_CASE("ad-psgd: neighbours of active ranks are passive, and each has one") {
  for (int workers = 2; workers < 40; ++workers)
    for (int rank = 0; rank < workers; rank += 2)
      for (const Topology topology : kTopologies) {
        const auto found = passive_neighbours(rank, workers, topology);
        CHECK(!found.empty());
        CHECK(std::ranges::none_of(found, is_active));
        CHECK(std::ranges::all_of(found, [&](int other) { return other < workers; }));
      }
  using Ranks = std::vector<int>;
  CHECK(passive_neighbours(0, 2, Topology::ring) == Ranks{1});
  CHECK(passive_neighbours(0, 8, Topology::ring) == Ranks{1, 7});
  CHECK(passive_neighbours(4, 8, Topology::ring) == Ranks{3, 5});
  CHECK(passive_neighbours(0, 5, Topology::ring) == Ranks{1});  // not 4, which is active
  CHECK(passive_neighbours(4, 5, Topology::ring) == Ranks{3});
  CHECK(passive_neighbours(0, 16, Topology::exponential) == Ranks{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(passive_neighbours(0, 32, Topology::exponential) ==
        Ranks{1, 3, 5, 9, 15, 17, 23, 27, 29, 31});
  CHECK(passive_neighbours(2, 7, Topology::complete) == Ranks{1, 3, 5});
}

TEST_CASE("ad-psgd: averages keep the mean, and weights approach each other" *
          doctest::skip(!has_virtual_time())) {
  for (const int workers : {2, 5, 8})
    for (const Topology topology : kTopologies)
      for (const auto device : {+[] { return cpu_device(); }, fake_gpu}) {
        CAPTURE(workers);
        Weights now(static_cast<std::size_t>(workers));
        PeersJob job = ad_psgd(workers, 150, topology);
        job.device = device;
        job.compute = random_compute;
        job.pauses = {20, 150};
        int seen = 0;
        job.paused = [&](Peer& peer, Strategy&, int rank) {
          now[static_cast<std::size_t>(rank)] = peer.weights();
          if (++seen % workers != 0) return;
          const Weights start = start_of(workers);
          for (std::size_t i = 0; i < kCount; ++i) {
            CHECK(std::abs(mean_of(now, i) - mean_of(start, i)) < 1e-6);
            if (seen > workers) CHECK(spread_of(now, i) < 1e-2 * spread_of(start, i));
          }
        };
        const PeersResult result = run_peers(job);
        CHECK(seen == 2 * workers);
        for (const auto& weights : result.weights) CHECK(same_bits(weights, result.weights[0]));
      }
}

// A slow passive worker takes part in many averages per iteration.
TEST_CASE("ad-psgd: every gradient moves the mean once, however often a worker averages" *
          doctest::skip(!has_virtual_time())) {
  constexpr int kWorkers = 6;
  constexpr std::int64_t kIterations = 60;
  for (const int slow : {-1, 0, 3}) {
    CAPTURE(slow);
    PeersJob job = ad_psgd(kWorkers, kIterations, Topology::complete);
    job.backward = [](Peer& peer, int rank, std::int64_t t) {
      peer.w.gradient.backend().fill(peer.w.gradient, 0.01 * static_cast<double>((rank + 1) * t));
    };
    job.compute = [=](int rank, std::int64_t t) {
      return (rank == slow ? 30 : 1) * random_compute(rank, t);
    };
    const PeersResult result = run_peers(job);
    double move = 0;  // of the mean
    for (int rank = 0; rank < kWorkers; ++rank)
      for (std::int64_t t = 1; t <= kIterations; ++t)
        move -= 0.125 * 0.01 * static_cast<double>((rank + 1) * t) / kWorkers;
    for (std::size_t i = 0; i < kCount; ++i)
      CHECK(std::abs(static_cast<double>(result.weights[0][i]) -
                     (mean_of(start_of(kWorkers), i) + move)) < 1e-5);
  }
}

TEST_CASE("ad-psgd: a round of N workers sends M N bytes, half of them in each direction" *
          doctest::skip(!has_virtual_time())) {
  constexpr std::int64_t kM = kCount * sizeof(float);
  for (const int workers : {2, 6}) {
    const PeersResult result = run_peers(ad_psgd(workers, 30));
    CHECK(result.pushed() == kM * workers / 2 * 30);
    CHECK(result.pulled() == result.pushed());
    CHECK(result.summed() == 0);
  }
  CHECK(run_peers(ad_psgd(5, 30)).pushed() == kM * 3 * 30);  // of five workers, three are active
}

TEST_CASE("ad-psgd: no speeds of workers lead to a deadlock" * doctest::skip(!has_virtual_time())) {
  for (const int workers : {2, 3, 8})
    for (const Topology topology : kTopologies)
      for (const char* link : {"none", "100mbit/1ms"}) {
        CAPTURE(workers);
        CAPTURE(link);
        PeersJob job = ad_psgd(workers, 1000, topology);
        job.link = link;
        job.compute = random_compute;
        job.pauses = {7, 8, 100, 700};
        job.paused = [](Peer&, Strategy&, int) {};
        const PeersResult result = run_peers(job);
        for (const auto& weights : result.weights) CHECK(same_bits(weights, result.weights[0]));
      }
}

TEST_CASE("ad-psgd: threads that run as fast as they can keep the mean") {
  for (const auto device : {+[] { return cpu_device(); }, fake_gpu}) {
    PeersJob job = ad_psgd(5, 200, Topology::complete);
    job.link = "none";
    job.device = device;
    job.pauses = {50};
    job.paused = [](Peer&, Strategy&, int) {};
    const PeersResult result = run_peers_now(job);
    for (const auto& weights : result.weights) CHECK(same_bits(weights, result.weights[0]));
    for (std::size_t i = 0; i < kCount; ++i)
      CHECK(std::abs(static_cast<double>(result.weights[0][i]) - mean_of(start_of(5), i)) < 1e-5);
  }
}
