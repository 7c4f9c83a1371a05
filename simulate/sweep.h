// Simulates one net with many algorithms, links and numbers of workers. The results are those of a
// comparison (speedup/results.h), so tables, figures and the report are shared with it.
#pragma once

#include <string>
#include <vector>

#include "simulate/simulation.h"
#include "speedup/results.h"

namespace tandem {

// Which ranks are simulated.
enum class SimulationMode {
  message,  // all of them, message by message
  folded,   // one that stands for all
  automatic,
};

struct Sweep {
  Profile profile;
  SimulationMode mode = SimulationMode::automatic;
  std::vector<int> workers;
  std::vector<std::string> links;
  std::vector<std::string> algos;
  std::vector<std::string> compressors;
  Simulation shared;            // the rest; an algorithm gets those of its options that it has
  bool keep_timelines = false;  // of few workers, for the report
  std::string what;             // in words: all that changes results, besides the lists above
  std::string command_line;

  // All cells, before any of them has been simulated. Throws UserError for what cannot be
  // simulated.
  Results begin() const;

  Simulation simulation_of(const Cell& cell) const;
  // In automatic mode, all ranks of up to 64 are simulated, and one of more if they are alike.
  // Stores the results in `cell`. Throws UserError if there is not enough memory.
  SimulatedRun run(Cell& cell) const;
};

// Takes the finished cells of an earlier run over into `now`, which begin() has made. Throws
// UserError, which names the difference, if that run was about something else.
void continue_sweep(const Results& earlier, Results& now);

// The quantiles of a normal distribution with mean 1.
std::vector<double> normal_spread(double deviation);

// One iteration of worker 0 as a list of what its two threads do, in the order of time. The run
// must have kept its spans.
std::string explanation(const SimulatedRun& run);

// The timeline of a simulated run, in the Chrome trace format.
std::string trace_of(const SimulatedRun& run);

}  // namespace tandem
