// Local SGD that averages after every iteration is synchronous SGD. That holds with momentum too.
// Each worker has one of its own, but v = m·v + g is linear: the mean of all momenta is the
// momentum of d-sync, and the mean of all moves is d-sync's update. Only rounding differs.
#include "dist/local_sgd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/monitor.h"
#include "tests/dist/gradients.h"
#include "tests/dist/peers.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kCount = 3000, kIterations = 60;
constexpr double kRate = 0.125, kSlope = 0.02;

struct Run {
  std::vector<float> weights;  // at the end
  double largest_weight = 0, largest_gradient = 0;
};

// A worker minimises paraboloids of its own. Their slopes differ and have a mean of kSlope: if they
// were equal, no period would change the mean of all workers.
Run run(const std::string& algo, std::int64_t period, int workers, double momentum) {
  Run result;
  Monitor<Run> seen;
  PeersJob job{.algo = algo,
               .workers = workers,
               .iterations = kIterations,
               .link = "none",
               .sgd = {.schedule = {.base = kRate}, .momentum = momentum},
               .start = [](int) { return gradient(kCount, 7); }};
  if (algo == "local-sgd") job.options["--period"] = period;
  // Synchronous SGD sums gradients of the mean over all samples, local SGD takes each worker's own.
  const float scale = algo == "local-sgd" ? 1 : 1 / static_cast<float>(workers);
  job.backward = [&](Peer& peer, int rank, std::int64_t t) {
    const auto w = peer.w.value.span<float>(), g = peer.w.gradient.span<float>();
    const std::vector<float> own = gradient(kCount, rank);
    const auto slope = static_cast<float>(kSlope * 2 * (rank + 1) / (workers + 1));
    double weight = 0, steepest = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float one = slope * w[i] + own[(i + static_cast<std::size_t>(t)) % kCount];
      weight = std::max(weight, std::abs(static_cast<double>(w[i])));
      steepest = std::max(steepest, std::abs(static_cast<double>(one)));
      g[i] = scale * one;
    }
    seen.change([&](Run& all) {
      all.largest_weight = std::max(all.largest_weight, weight);
      all.largest_gradient = std::max(all.largest_gradient, steepest);
    });
  };
  result.weights = run_peers_now(job).weights[0];
  seen.change([&](const Run& all) {
    result.largest_weight = all.largest_weight;
    result.largest_gradient = all.largest_gradient;
  });
  return result;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

// How far two runs may be apart because of rounding.
//
// An iteration computes v = m·v + slope·w + b and w = w - r·v; for local SGD, v is the mean of all
// workers' momenta. If an iteration adds an error of up to e to v and of up to d to w, the error x
// of w follows
//
//   x(t+1) = (1 + m - r·slope)·x(t) - m·x(t-1) + d(t+1) - m·d(t) - r·e(t+1).
//
// The roots of z² - (1 + m - r·slope)·z + m are real and between 0 and 1, if r·slope ≤ (1 - √m)².
// Their product is m, so the smaller one is at most √m, and what is added once grows to at most
// 1/(1 - √m) of itself. At the end, |x| ≤ iterations·((1 + m)·d + r·e)/(1 - √m).
//
// A rounding adds at most u = 2⁻²⁴ of the result. G, V ≤ G/(1 - m) and W are the largest gradient,
// momentum and weight. With p workers, the roundings are:
//
//   both       gradient: product, sum, scale                 e: 3uG
//              v: m, product, sum                            e: 3uV
//              w: r, product, difference                     d: 2ur·V + uW
//   d-sync     p-1 sums of gradients                         e: (p-1)uG
//   local-sgd  of moves, at most r·V: a difference, p-1
//              sums, 1/p, product; then a sum                d: (p+2)ur·V + uW
//
// Products of two errors are left out; a hundredth more is enough for them.
double rounding_of_both(const Run& a, const Run& b, int workers, double momentum) {
  const double u = std::numeric_limits<float>::epsilon() / 2, p = workers, m = momentum;
  REQUIRE(kRate * kSlope <= (1 - std::sqrt(m)) * (1 - std::sqrt(m)));
  const double gradient = std::max(a.largest_gradient, b.largest_gradient);
  const double weight = std::max(a.largest_weight, b.largest_weight);
  const double v = gradient / (1 - m);
  const double e_both = 2 * (3 * gradient + 3 * v) + (p - 1) * gradient;
  const double d_both = 2 * (2 * kRate * v + weight) + (p + 2) * kRate * v + weight;
  return 1.01 * kIterations * u * ((1 + m) * d_both + kRate * e_both) / (1 - std::sqrt(m));
}

}  // namespace

TEST_CASE("local-sgd: with --period 1 it is d-sync, up to rounding") {
  for (const int workers : {2, 3, 4, 7})
    for (const double momentum : {0.0, 0.9}) {
      CAPTURE(workers);
      CAPTURE(momentum);
      const Run sync = run("d-sync", 1, workers, momentum);
      const Run local = run("local-sgd", 1, workers, momentum);
      const double bound = rounding_of_both(sync, local, workers, momentum);
      CHECK(largest_difference(sync.weights, local.weights) <= bound);
      // What the algorithm changes is far larger than the bound.
      const Run other = run("local-sgd", 8, workers, momentum);
      CHECK(largest_difference(sync.weights, other.weights) > 10 * bound);
    }
}
