// What the tests of simulations share.
#pragma once

#include <cstdint>
#include <string>

#include "dist/compress/compressor.h"
#include "simulate/simulation.h"

namespace tandem::test {

// A net of equal tensors that together take this long.
inline Profile equal_tensors(int tensors, std::int64_t elements, double forward_s,
                             double backward_s, const HostCost& host = {}) {
  Profile profile;
  for (const std::string& compressor : compressor_names()) profile.host[compressor] = host;
  for (int i = 0; i < tensors; ++i)
    profile.tensors.push_back({.name = "tensor " + std::to_string(i),
                               .elements = elements,
                               .forward_s = forward_s / tensors,
                               .backward_s = backward_s / tensors});
  return profile;
}

// The mean time of an iteration in seconds.
inline double iteration(const Profile& profile, const Simulation& simulation) {
  return simulate(profile, simulation).mean_s();
}

}  // namespace tandem::test
