// The cells of a comparison, and how each of them is run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

// A program that can be compared, with its usual batch and iterations.
struct Bench {
  std::string program;
  std::int64_t batch, iterations;
};
const std::vector<Bench>& all_benches();

// The rows that --algos and --compress choose. Without --compress, --algos names rows; with it,
// --algos names algorithms, and each is compared with each compression. By default, the paper's
// algorithms are, with all compressions that they can have. Throws UserError for an unknown name.
std::vector<Algorithm> rows_named(const std::vector<std::string>& algos,
                                  const std::vector<std::string>& compressions);

struct Comparison {
  Bench bench;
  std::vector<int> workers;
  std::vector<std::string> links;
  std::vector<Algorithm> algorithms;
  std::int64_t iterations = 0, repeats = 3, tests = 20;
  std::int64_t timed = 0;  // iterations over each link; 0: all
  std::uint64_t seed = 1;
  DeviceKind device = DeviceKind::cpu;
  Precision precision = Precision::fp32;
  bool again_disturbed = false;      // time finished cells again if they were disturbed
  std::vector<std::string> mpiexec;  // the command that starts ranks; empty: ranks are threads
  std::vector<std::string> options;  // passed to the program
  std::string programs;              // the folder of the programs
  std::string command_line;          // of the comparison

  // All cells, before any of them has been run.
  Results begin() const;
  // The same, with the finished cells of an earlier run of the same plan; that run may have had
  // other workers, links or algorithms. Throws UserError, which names the difference, if the plan
  // was different, or if the machine was different and not all cells are finished.
  Results resume(const Results& earlier) const;
  // The command that runs a cell, without --iterations and output files. It passes those of
  // `options` that the cell's algorithm has.
  std::vector<std::string> command(const Cell& cell) const;
  // Whether the same seed always gives the same bits, also across all synchronous algorithms.
  bool deterministic() const;
};

// Options that turn off the algorithm's warm-up, so that its first iterations are like all others.
std::vector<std::string> without_warmup(const Cell& cell);

// The link of the run that is tested: none, if the link does not change the weights.
std::string link_of_tests(const Cell& cell);

// Throws UserError if `options`, which go to the program, contain one that the comparison sets
// itself.
void check_handed_on(const std::vector<std::string>& options);

// Runs a few iterations without timing them, so that files are cached and the processor is at full
// speed.
void warm_up(const Comparison& plan, const Cell& cell);

// Runs a cell: once to test, unless another cell with the same weights has been tested; as many
// times as the plan says to measure times; and once for the timeline. Stores the results in `cell`,
// or the reason of a failure. Calls `running` with what it is doing.
void run_cell(const Comparison& plan, Results& results, Cell& cell,
              const std::function<void(const std::string& what)>& running);

}  // namespace tandem
