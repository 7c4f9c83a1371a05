#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/random.h"
#include "tests/dist/fake_gpu.h"
#include "tests/dist/gradients.h"
#include "tests/dist/peers.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kCount = 48;          // elements; a multiple of 16 is not padded
constexpr std::int64_t kAlways = 1'000'000;  // --gossip-p 1

PeersJob gosgd(int workers, std::int64_t iterations, std::int64_t p) {
  return {.algo = "gosgd",
          .options = {{"--gossip-p", p}},
          .workers = workers,
          .iterations = iterations,
          .start = [](int rank) { return gradient(kCount, rank); }};
}

double share_of(Strategy& strategy) {
  Snapshot saved;
  saved.save(strategy);
  saved.wait();
  double share = 0;
  const auto bytes = saved.items().at("share of the mean").data();
  REQUIRE(bytes.size() == sizeof share);
  std::memcpy(&share, bytes.data(), sizeof share);
  return share;
}

// Depends on rank, iteration and weights.
void some_gradient(Peer& peer, int rank, std::int64_t t) {
  const float* weights = peer.w.value.data<float>();
  float* gradients = peer.w.gradient.data<float>();
  for (std::int64_t i = 0; i < kCount; ++i)
    gradients[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t);
}

}  // namespace

TEST_CASE("gosgd: at every pause the shares of all workers sum to one" *
          doctest::skip(!has_virtual_time())) {
  for (const int workers : {2, 3, 7}) {
    CAPTURE(workers);
    std::vector<std::vector<double>> shares(static_cast<std::size_t>(workers));
    PeersJob job = gosgd(workers, 200, 300'000);
    job.compute = random_compute;
    job.pauses = {1, 2, 50, 120, 200};
    job.paused = [&](Peer&, Strategy& strategy, int rank) {
      shares[static_cast<std::size_t>(rank)].push_back(share_of(strategy));
    };
    run_peers(job);
    bool equal = true;
    for (std::size_t pause = 0; pause < job.pauses.size(); ++pause) {
      double sum = 0;
      for (const auto& of_one : shares) {
        CHECK(of_one.at(pause) > 0);
        sum += of_one.at(pause);
        equal = equal && of_one.at(pause) == shares[0].at(pause);
      }
      CHECK(std::abs(sum - 1) < 1e-12);
    }
    CHECK(!equal);
  }
}

// Letters do not change the mean by shares, and gradients are zero.
TEST_CASE("gosgd: without gradients the weights approach each other, and end at the mean" *
          doctest::skip(!has_virtual_time())) {
  constexpr int kWorkers = 5;
  PeersJob job = gosgd(kWorkers, 100, kAlways);
  job.compute = random_compute;
  std::vector<std::vector<float>> before(kWorkers);
  job.pauses = {100};
  job.paused = [&](Peer& peer, Strategy&, int rank) {
    before[static_cast<std::size_t>(rank)] = peer.weights();
  };
  const PeersResult result = run_peers(job);
  for (std::size_t i = 0; i < kCount; ++i) {
    double mean = 0;
    for (int rank = 0; rank < kWorkers; ++rank)
      mean += static_cast<double>(gradient(kCount, rank)[i]) / kWorkers;
    for (std::size_t rank = 0; rank < kWorkers; ++rank) {
      CHECK(std::abs(static_cast<double>(before[rank][i]) - mean) < 1e-3);
      CHECK(std::abs(static_cast<double>(result.weights[rank][i]) - mean) < 1e-5);
    }
  }
}

// Both workers take 1 ms, and a letter takes less. So what a worker sends after iteration t is
// mixed in before iteration t+2.
TEST_CASE("gosgd: two workers equal a one-process reference, bit for bit" *
          doctest::skip(!has_virtual_time())) {
  constexpr std::int64_t kIterations = 12;
  Peer peers[2] = {{cpu_device(), gradient(kCount, 0)}, {cpu_device(), gradient(kCount, 1)}};
  double shares[2] = {0.5, 0.5};
  struct Sent {
    double share;
    Tensor values;
  };
  std::map<std::int64_t, Sent> sent[2];
  const auto mix = [&](int rank, const Sent& letter) {
    const Tensor& own = peers[rank].w.value;
    const double sum = shares[rank] + letter.share;
    own.backend().weighted_sum(shares[rank] / sum, own, letter.share / sum, letter.values, own);
    shares[rank] = sum;
  };
  for (std::int64_t t = 1; t <= kIterations; ++t)
    for (const int rank : {0, 1}) {
      if (t > 2) mix(rank, sent[1 - rank].at(t - 2));
      some_gradient(peers[rank], rank, t);
      peers[rank].sgd.update(t);
      shares[rank] /= 2;
      sent[rank][t] = {shares[rank], peers[rank].w.value.clone()};
    }
  for (const int rank : {0, 1})
    for (const std::int64_t t : {kIterations - 1, kIterations}) mix(rank, sent[1 - rank].at(t));
  for (const int rank : {0, 1}) {
    const Tensor& own = peers[rank].w.value;
    own.backend().weighted_sum(shares[rank], own, 0, own, own);
  }
  std::vector<float> expected = peers[0].weights();
  const auto second = peers[1].weights();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += second[i];

  PeersJob job = gosgd(2, kIterations, kAlways);
  job.backward = some_gradient;
  for (const auto device : {+[] { return cpu_device(); }, fake_gpu}) {
    job.device = device;
    const PeersResult result = run_peers(job);
    for (const auto& weights : result.weights) CHECK(same_bits(weights, expected));
  }
}

TEST_CASE("gosgd: a round of N workers sends M N p bytes" * doctest::skip(!has_virtual_time())) {
  constexpr std::int64_t kM = kCount * sizeof(float);
  for (const int workers : {2, 5}) {
    const PeersResult always = run_peers(gosgd(workers, 40, kAlways));
    CHECK(always.pushed() == kM * workers * 40);
    CHECK(always.pulled() == 0);
    CHECK(always.summed() == 0);
  }
  const PeersResult some = run_peers(gosgd(4, 2000, 100'000));
  CHECK(some.pushed() % kM == 0);
  const double sent = static_cast<double>(some.pushed() / kM), deviation = std::sqrt(800 * 0.9);
  CHECK(std::abs(sent - 800) < 4 * deviation);
}

TEST_CASE("gosgd: no speeds of workers lead to a deadlock" * doctest::skip(!has_virtual_time())) {
  for (const int workers : {2, 3, 8})
    for (const char* link : {"none", "100mbit/1ms"}) {
      CAPTURE(workers);
      CAPTURE(link);
      PeersJob job = gosgd(workers, 2000, 500'000);
      job.link = link;
      job.compute = random_compute;
      job.pauses = {7, 8, 200, 1500};
      job.paused = [](Peer&, Strategy&, int) {};
      const PeersResult result = run_peers(job);
      for (const auto& weights : result.weights) CHECK(same_bits(weights, result.weights[0]));
    }
}

TEST_CASE("gosgd: a worker that is faster than the network waits for it" *
          doctest::skip(!has_virtual_time())) {
  PeersJob job = gosgd(2, 100, kAlways);
  job.link = "1mbit/1ms";
  constexpr double kLetter = kCount * sizeof(float) / 125e3;  // seconds on the link
  std::int64_t last = 0;
  double seconds = 0;
  job.compute = [&](int rank, std::int64_t t) {
    if (rank == 0 && t > last) {
      last = t;
      seconds = seconds_of(Clock::now().time_since_epoch());
    }
    return std::chrono::microseconds(1);
  };
  run_peers(job);
  // When the last iteration begins, only a few letters are still on their way.
  CHECK(last == 100);
  CHECK(seconds > 90 * kLetter);
}

TEST_CASE("gosgd: threads that run as fast as they can keep the mean") {
  for (const auto device : {+[] { return cpu_device(); }, fake_gpu}) {
    PeersJob job = gosgd(4, 200, kAlways);
    job.link = "none";
    job.device = device;
    job.pauses = {50};
    job.paused = [](Peer&, Strategy&, int) {};
    const PeersResult result = run_peers_now(job);
    CHECK(result.pushed() == kCount * 4 * 4 * 200);  // four workers, four bytes per element
    for (const auto& weights : result.weights) CHECK(same_bits(weights, result.weights[0]));
    for (std::size_t i = 0; i < kCount; ++i) {
      double mean = 0;
      for (int rank = 0; rank < 4; ++rank)
        mean += static_cast<double>(gradient(kCount, rank)[i]) / 4;
      CHECK(std::abs(static_cast<double>(result.weights[0][i]) - mean) < 1e-5);
    }
  }
}
