// How simulations are compared with times that are computed by hand.
//
// Most nets of these tests are so small that each rank's share of a message is one block. Then a
// step of the ring is one message, nothing is pipelined, and the equations hold exactly, except
// that the simulator rounds times to nanoseconds.
#pragma once

#include <doctest/doctest.h>

#include "dist/block.h"
#include "dist/transport/link.h"
#include "dist/transport/link_speed.h"
#include "tests/simulate/runs.h"

namespace tandem::test {

inline constexpr LinkSpeed kGigabit{.bytes_per_s = 1.25e8, .latency_s = 50e-6};
inline constexpr double kBlockBytes = kBlock * sizeof(float);

// A message of M bytes takes alpha + M·beta. The switch forwards its first frame, so that a frame
// counts twice.
inline double alpha(const LinkSpeed& link) {
  return link.latency_s + static_cast<double>(kFrameBytes) / link.bytes_per_s;
}
inline double beta(const LinkSpeed& link) { return 1 / link.bytes_per_s; }

// The tolerance is relative, also for times far below a second.
inline doctest::Approx about(double seconds, double tolerance) {
  return doctest::Approx(seconds).epsilon(tolerance).scale(0);
}
// Rounding to nanoseconds, a few dozen times in a fraction of a millisecond or more.
inline doctest::Approx exactly(double seconds) { return about(seconds, 1e-4); }

}  // namespace tandem::test
