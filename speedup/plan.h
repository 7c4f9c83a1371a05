// Which cells a comparison has, and how each of them is run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

// A program that can be compared on, with what is usual for it.
struct Bench {
  std::string program, net;
  std::int64_t batch, iterations;
};
const std::vector<Bench>& all_benches();

struct Plan {
  Bench bench;
  std::vector<int> workers;
  std::vector<std::string> links;
  std::vector<Algorithm> algorithms;
  std::int64_t iterations = 0, repeats = 3, tests = 20;
  std::int64_t timed = 0;  // iterations over each link; 0: all
  std::uint64_t seed = 1;
  std::string device = "cpu", precision = "fp32";
  bool again_disturbed = false;      // finished cells that were disturbed are timed again
  std::vector<std::string> mpiexec;  // what starts ranks; empty: they are threads
  std::vector<std::string> options;  // handed on to the program
  std::string programs;              // the folder that they are in
  std::string command_line;          // of the comparison

  // All cells, none of which has been run.
  Results begin() const;
  // The same with what an earlier run of the same plan has finished, perhaps for other workers,
  // links or algorithms. Throws UserError, naming what is different, if it was another plan, or
  // another machine and not all is finished.
  Results resume(const Results& earlier) const;
  // How a cell is run; `iterations` and files are still missing. Of `options` it gets those that
  // its algorithm knows.
  std::vector<std::string> command(const Cell& cell) const;
  // Whether the same seed gives the same bits every time, and by every synchronous algorithm.
  bool deterministic() const;
};

// Options with which the first iterations are those of the algorithm itself, as all others.
std::vector<std::string> without_warmup(const Cell& cell);

// Throws UserError if one of the words that are to be handed on to a program is an option that a
// comparison sets itself.
void check_handed_on(const std::vector<std::string>& options);

// A few iterations that nobody times: files are read, the processor wakes up.
void warm_up(const Plan& plan, const Cell& cell);

// Runs a cell: once to test, unless the weights are known from another one; as often as the plan
// says to take times; and once for the timeline.
// Fills in what the results say of it, or why it failed. Says what is running.
void run_cell(const Plan& plan, Results& results, Cell& cell,
              const std::function<void(const std::string& what)>& running);

}  // namespace tandem
