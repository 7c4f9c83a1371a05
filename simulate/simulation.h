// Runs a training job in virtual time: every rank, with the strategies, rings and servers of a real
// run. Only computing is replaced: it takes the time that a profile says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dist/strategies.h"
#include "dist/timing/profile.h"
#include "dist/timing/rank_report.h"
#include "simulate/network.h"

namespace tandem {

struct Simulation {
  std::string algo;
  StrategyOptions options = {};
  std::string compress = "none";  // a codec must encode blocks (codecs/block_codec.h)
  int workers = 1;
  LinkSpeed link = {};
  std::int64_t iterations = 20;  // more if pipelines, measuring or averaging take longer
  // Whether one rank stands for all (simulate/network.h): exact if they have equal shares of the
  // gradient.
  bool one_for_all = false;

  // What makes ranks differ.
  std::map<int, double> slow_ranks = {};     // how fast each computes, compared with the others
  std::map<int, LinkSpeed> slow_links = {};  // of these ranks' nodes
  int ranks_per_node = 1;
  LinkSpeed inner = {};              // between ranks of a node
  bool servers_share_nodes = false;  // with workers: the first server with the first ones; else
                                     // servers have the last nodes
  bool scatters = false;             // computing scatters as the profile says
  std::uint64_t seed = 1;            // of that

  bool keep_spans = false;  // and when the NIC of rank 0's node was busy

  bool random(const Profile& profile) const { return scatters && !profile.spread.empty(); }
};

struct SimulatedRun {
  // When each iteration ended on the first worker, in seconds since the beginning. If times repeat,
  // the simulation ends early. Asynchronous workers have different iterations: then, when p more
  // iterations had ended, whichever of the p workers they belong to.
  std::vector<double> ends;
  bool repeats = false;
  std::int64_t cold = 0;  // first iterations, which fill pipelines and measure for plans
  std::int64_t first_counted = 1, last_counted = 0;  // the mean is that of these: whole periods
  std::vector<RankReport> ranks;  // workers, then servers; without cold iterations
  CommunicationPlan plan;
  std::vector<SimulatedNetwork::Use> use;  // of the NIC of rank 0's node, if spans are kept
  std::int64_t events = 0;

  double mean_s() const;                  // of an iteration
  std::vector<double> counted_s() const;  // every iteration that counts
};

// Throws UserError, which says how they differ, if ranks cannot be alike.
void require_alike(const Profile& profile, const Simulation& simulation);

// Throws UserError if the compression cannot be simulated, and if one rank cannot stand for all:
// with servers, with ranks that differ, and if fewer blocks than workers are summed at a time.
SimulatedRun simulate(const Profile& profile, const Simulation& simulation);

}  // namespace tandem
