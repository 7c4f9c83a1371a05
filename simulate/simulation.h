// Runs a training job in virtual time: every rank, with the strategies, rings and servers of a real
// run. Only computing is replaced: it takes the time that a profile says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/strategies.h"
#include "dist/timing/profile.h"
#include "dist/transport/link_speed.h"

namespace tandem {

// Who is simulated.
enum class SimulatedRanks {
  all,  // every rank
  one,  // one that stands for all (folded.h): exact if they have equal shares of the gradient
};

struct Simulation {
  std::string algo;
  StrategyOptions options = {};
  std::string compress = "none";
  int workers = 1;
  LinkSpeed link = {};
  HostCost host = {};
  std::int64_t iterations = 20;
  SimulatedRanks ranks = SimulatedRanks::all;
};

// When each iteration has ended, on the first worker, in seconds since the beginning. Throws
// UserError if one rank cannot stand for all: with servers, and if fewer blocks than workers are
// summed at a time.
std::vector<double> simulate(const Profile& profile, const Simulation& simulation);

}  // namespace tandem
