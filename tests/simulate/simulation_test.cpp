#include "simulate/simulation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "base/virtual_time.h"
#include "dist/transport/link.h"
#include "tests/simulate/runs.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kForward = 0.04, kBackward = 0.08;  // seconds

constexpr HostCost kHost{.check = 1e-10,
                         .compress = 1e-9,
                         .decompress = 1e-9,
                         .add = 1e-9,
                         .copy = 1e-10,
                         .update = 1e-9};

// As many parameters as ResNet-50, in as many tensors, but all of the same size.
Profile net(int tensors = 161, std::int64_t elements = 158'000, const HostCost& host = {}) {
  return equal_tensors(tensors, elements, kForward, kBackward, host);
}

// The ring by its formula, without latencies.
double ring(double bytes, int workers) { return 2 * bytes * (workers - 1) / workers / 1.25e9; }

}  // namespace

TEST_CASE("simulation: d-sync computes and then communicates, pipe-sgd does both at once" *
          doctest::skip(!has_virtual_time())) {
  const Profile profile = net();
  for (const auto& [compress, bytes] : {std::pair("none", 4.0), {"trunc16", 2.0}, {"quant8", 1.0}})
    for (const int workers : {2, 4, 16}) {
      CAPTURE(compress);
      CAPTURE(workers);
      Simulation simulation{
          .algo = "d-sync", .compress = compress, .workers = workers, .link = parse_link("10gbe")};
      const double communication = ring(161 * 158'000 * bytes, workers);
      const double compute = kForward + kBackward;
      CHECK(iteration(profile, simulation) ==
            doctest::Approx(compute + communication).epsilon(0.02).scale(0));
      simulation.algo = "pipe-sgd";
      CHECK(iteration(profile, simulation) ==
            doctest::Approx(std::max(compute, communication)).epsilon(0.02).scale(0));
    }
}

TEST_CASE("simulation: what hosts do takes time" * doctest::skip(!has_virtual_time())) {
  const double elements = 161 * 158'000;
  Simulation simulation{.algo = "d-sync", .workers = 4, .link = parse_link("10gbe")};
  const double without = iteration(net(), simulation);
  const auto with = [&](const HostCost& host) {
    return iteration(net(161, 158'000, host), simulation);
  };
  CHECK(with({.update = 1e-9}) ==
        doctest::Approx(without + 1e-9 * elements).epsilon(0.001).scale(0));
  CHECK(with({.check = 1e-9}) ==
        doctest::Approx(without + 1e-9 * elements).epsilon(0.001).scale(0));
  // A rank adds three quarters of the gradient. It does so while its network card sends.
  CHECK(with({.add = 1e-9}) == doctest::Approx(without).epsilon(0.001).scale(0));
  const double compute = kForward + kBackward, additions = 1e-8 * 0.75 * elements;
  const double with_additions = with({.add = 1e-8});
  CHECK(with_additions > compute + additions);
  CHECK(with_additions < without + additions);
}

TEST_CASE("simulation: every algorithm runs, twice in the same time, and hides what it can" *
          doctest::skip(!has_virtual_time())) {
  const Profile profile = net(20, 100'000, kHost);
  for (const StrategyInfo& algo : all_strategies())
    for (const std::string& compress : compressor_names()) {
      if ((!algo.distributed() || algo.sends_weights) && compress != "none") continue;
      if (kSanitized && compress == "trunc16") continue;
      CAPTURE(algo.name);
      CAPTURE(compress);
      Simulation simulation{.algo = algo.name,
                            .compress = compress,
                            .workers = algo.distributed() ? 5 : 1,
                            .link = parse_link("10gbe")};
      if (algo.servers({}) > 0) simulation.options["--servers"] = 5;
      const SimulatedRun run = simulate(profile, simulation);
      CHECK(run.ends == simulate(profile, simulation).ends);
      const double seconds = run.mean_s();
      CHECK(seconds >= kForward + kBackward);
      CHECK(seconds < kForward + kBackward + 0.04);
      if (algo.family != Family::synchronous || !algo.keeps_plan) continue;
      CHECK(seconds < kForward + kBackward + 0.01);  // communication hides behind backward
    }
}

TEST_CASE("simulation: every algorithm ends if ranks share nodes" *
          doctest::skip(!has_virtual_time())) {
  const Profile profile = equal_tensors(20, 100'000, kForward, kBackward, kHost);
  for (const StrategyInfo& algo : all_strategies()) {
    if (!algo.distributed()) continue;
    CAPTURE(algo.name);
    const Simulation simulation{.algo = algo.name,
                                .workers = 3,
                                .link = parse_link("1gbe"),
                                .ranks_per_node = 2,
                                .inner = parse_link("100gbe")};
    CHECK(simulate(profile, simulation).mean_s() >= kForward + kBackward);
  }
}

// All messages stay within a node, so the link does not matter.
TEST_CASE("simulation: servers may share the nodes of workers" *
          doctest::skip(!has_virtual_time())) {
  Simulation simulation{.algo = "ps-sync",
                        .options = {{"--servers", 2}},
                        .workers = 4,
                        .link = parse_link("1gbe"),
                        .ranks_per_node = 4,
                        .servers_share_nodes = true};
  CHECK(iteration(net(), simulation) == doctest::Approx(kForward + kBackward).scale(0));
  simulation.servers_share_nodes = false;
  CHECK(iteration(net(), simulation) > 1.5 * (kForward + kBackward));
}

TEST_CASE("simulation: servers share the work" * doctest::skip(!has_virtual_time())) {
  Simulation simulation{.algo = "ps-sync", .workers = 4, .link = parse_link("10gbe")};
  double last = 1e9;
  for (const int servers : {1, 2, 4}) {
    simulation.options["--servers"] = servers;
    const double seconds = iteration(net(), simulation);
    // A server receives the gradients of four workers.
    const double expected = kForward + kBackward + 4.0 / servers * 161 * 158'000 * 4 / 1.25e9;
    CHECK(seconds == doctest::Approx(expected).epsilon(0.05).scale(0));
    CHECK(seconds < last);
    last = seconds;
  }
}

TEST_CASE("simulation: if nodes add first, each pushes once" * doctest::skip(!has_virtual_time())) {
  // The server is alone on its node.
  Simulation simulation{
      .algo = "ps-sync", .workers = 8, .link = parse_link("10gbe"), .ranks_per_node = 4};
  const double gradient = 161 * 158'000 * 4 / 1.25e9;
  // A node's NIC sends the gradient of one worker after that of another. So the server, which
  // receives eight gradients, can only answer while it receives the last two.
  CHECK(iteration(net(), simulation) ==
        doctest::Approx(kForward + kBackward + (6 + 8) * gradient).epsilon(0.02).scale(0));
  simulation.options["--aggregate"] = 1;
  CHECK(iteration(net(), simulation) ==
        doctest::Approx(kForward + kBackward + 2 * gradient).epsilon(0.02).scale(0));
  // As many servers as nodes, each on a node of its own, would need one gradient's time. Here they
  // share a node.
  simulation.options["--servers"] = 2;
  CHECK(iteration(net(), simulation) ==
        doctest::Approx(kForward + kBackward + 2 * gradient).epsilon(0.02).scale(0));
  for (const char* compress : {"trunc16", "quant8"}) {
    simulation.compress = compress;  // weights are not compressed
    CHECK(iteration(net(), simulation) ==
          doctest::Approx(kForward + kBackward + 2 * gradient).epsilon(0.02).scale(0));
  }
}

TEST_CASE("simulation: one rank that stands for all takes the same time" *
          doctest::skip(!has_virtual_time())) {
  // Equal shares of whole blocks for every number of workers below.
  const Profile profile = net(3, 64 * 2048, kHost);
  for (const char* algo : {"d-sync", "pipe-sgd", "local-sgd"})
    for (const std::string& compress : compressor_names())
      for (const int workers : {2, 4, 16, 64}) {
        if (kSanitized && workers > 16) continue;
        CAPTURE(algo);
        CAPTURE(compress);
        CAPTURE(workers);
        Simulation simulation{.algo = algo,
                              .compress = compress,
                              .workers = workers,
                              .link = parse_link("1gbe"),
                              .iterations = 6};
        const auto all = simulate(profile, simulation).ends;
        simulation.one_for_all = true;
        CHECK(simulate(profile, simulation).ends == all);
      }
}

TEST_CASE("simulation: one rank can stand for a thousand, if they are alike" *
          doctest::skip(!has_virtual_time())) {
  Simulation simulation{.algo = "d-sync",
                        .workers = 1024,
                        .link = parse_link("10gbe"),
                        .iterations = 12,
                        .one_for_all = true};
  const double latencies = 2 * 1023 * (simulation.link.latency_s + kFrameBytes / 1.25e9);
  const double seconds = iteration(net(), simulation);
  const double expected = kForward + kBackward + ring(161 * 158'000 * 4.0, 1024);
  CHECK(seconds >= 0.99 * expected);
  CHECK(seconds <= expected + latencies);

  // A message per tensor has fewer blocks than there are workers, and servers are not workers.
  const auto refusal = [&](const std::string& algo) {
    simulation.algo = algo;
    return message_of<UserError>([&] { simulate(net(), simulation); });
  };
  CHECK(refusal("wfbp") ==
        "wfbp: one rank cannot stand for all, because not all have an equal part in every sum");
  CHECK(refusal("ps-sync") ==
        "ps-sync: one rank cannot stand for all, because servers are not workers");
}

TEST_CASE("simulation: phantom memory has addresses of its own, which are used again") {
  constexpr std::size_t kMany = std::size_t{1} << 32;
  void* const one = new_phantom(kMany);
  void* const other = new_phantom(1);
  CHECK(is_phantom(one));
  CHECK(is_phantom(other));
  CHECK(one != other);
  CHECK_FALSE(is_phantom(&one));
  CHECK_FALSE(is_phantom(nullptr));
  delete_phantom(one);
  CHECK(new_phantom(kMany) == one);
  delete_phantom(one);
  delete_phantom(other);
  CHECK_THROWS_AS(delete_phantom(other), std::logic_error);
  CHECK_THROWS_AS(new_phantom(std::size_t{1} << 46), OutOfMemory);
}
