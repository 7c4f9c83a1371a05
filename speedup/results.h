// The results of a comparison of algorithms: one cell for each algorithm, link and number of
// workers. They are stored in results.json (results_file.h). Tables, figures and the report are
// made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/timing/model.h"
#include "speedup/load.h"
#include "tensor/precision.h"

namespace tandem {

// An algorithm with a compressor, by the name that the paper gives it: a row of a table.
struct Algorithm {
  std::string name;  // "Pipe-SGD+T"
  std::string algo;  // as --algo
  std::string compress;
  bool by_default = true;  // false: only compared on request
};
const std::vector<Algorithm>& all_algorithms();  // from dist/strategies.h, in its order
// "Pipe-SGD" with "trunc16" is Pipe-SGD+T, and with "topk:0.01" Pipe-SGD+topk:0.01.
std::string row_name(const std::string& label, const std::string& compress);
struct Cell;
// The same, and rows of other compressions that these cells have, each after the others of its
// algorithm.
std::vector<Algorithm> rows_of(std::span<const Cell> cells);

// What a worker's compute thread spent its mean iteration on, and what its communication thread did
// in parallel. The parts without `hidden` sum up to the iteration.
struct Breakdown {
  double compute = 0;   // data, forward, backward, update
  double compress = 0;  // as far as the compute thread waits for it
  double exposed = 0;   // communication and plain sums that the compute thread waits for
  double other = 0;     // the rest: handing over between threads, waking up, gaps between spans
  double hidden = 0;    // communication, sums and compression that overlap with computation

  double iteration() const { return compute + compress + exposed + other; }
};

// An interval on one thread of one rank; milliseconds from the beginning of the excerpt.
struct TimelineSpan {
  int rank = 0;
  bool server = false;
  bool communicates = false;  // the communication thread; else the compute thread
  std::string what;           // data, forward, backward, update, wait, compress, sum, communicate
  double begin = 0, end = 0;
  std::int64_t iteration = 0;
};

std::string workers_text(int workers);  // "4 workers"

// A test during a run.
struct CurvePoint {
  double wall_s = 0;  // of training, without tests
  std::int64_t iteration = 0;
  double accuracy = 0;
  std::optional<double> objective = {};  // with --objective, see train/options.h
};

struct Cell {
  std::string name, algo, compress;  // of the algorithm
  int workers = 0;
  std::string link;

  // What follows is set once the cell has been run. `failure` says why the rest is empty.
  std::string failure;
  // From a run with tests; without a link, if that does not change the weights.
  double test_accuracy = 0;  // at the end
  double train_loss = 0;
  std::string weights_hash;
  std::int64_t warmup = 0;  // iterations of d-sync before pipe-sgd opens its pipeline
  std::vector<CurvePoint> curve;
  // From timed runs.
  std::vector<double> repeats_ms;      // the mean iteration of each repeat
  double median_ms = 0;                // of the iterations of all repeats
  Breakdown breakdown;                 // milliseconds; of all repeats
  std::optional<double> predicted_ms;  // by predicted_iteration()
  std::optional<ModelInput> model;     // input of the prediction
  double bytes_per_iteration = 0;      // sent by all ranks together
  std::vector<Load> loads;             // during each repeat; empty if the system does not tell
  std::vector<TimelineSpan> timeline;  // two iterations near the mean
  // If it was simulated.
  std::string simulated_ranks;        // which of them, and why
  std::optional<double> measured_ms;  // of a real run

  std::string setting() const;  // "4 workers, link 1gbe"
  bool done() const { return failure.empty() && !repeats_ms.empty(); }
  double iteration_ms() const;              // the headline: the mean of the repeats' means
  std::optional<double> spread_ms() const;  // half the range of the repeats, if there are several
  std::string disturbed() const { return disturbance(loads); }
  // Training time in seconds until the first of three consecutive tests that all reached this
  // accuracy. Near the end of the run, the remaining tests suffice.
  std::optional<double> seconds_to(double accuracy) const;
  // The highest accuracy for which seconds_to() has an answer.
  double reached() const;
};

struct Environment {
  std::string tandem;                                    // version and commit
  std::string processor, memory, system, gpu, versions;  // gpu may be empty
  int cores = 0;
  std::string transport;  // "threads" or "MPI"
  std::string date;       // of the last cell
  std::string command;
};

struct Results {
  std::string bench;       // the program
  bool simulated = false;  // else measured
  std::string net;         // for people: "MNIST-MLP"
  std::string data;
  DeviceKind device = DeviceKind::cpu;
  Precision precision = Precision::fp32;
  std::string options;  // passed to the program in addition
  std::int64_t batch = 0;
  std::int64_t batch_per_worker = 0;  // samples of a worker; 0: the batch is divided among them
  std::int64_t iterations = 0, timed = 0;  // of a run, and of a timed run over a link
  std::int64_t repeats = 0, tests = 0, parameters = 0;
  std::uint64_t seed = 0;
  double target_accuracy = 0;
  double optimum = 0;  // the minimum of the objective, for the gap figure; 0: unknown
  Environment environment;
  std::vector<Cell> cells;  // by workers, then link, then algorithm

  // How many samples all workers together train on in an iteration.
  double samples(int workers) const;
  // Whether only some of a run's iterations are timed, and the times of whole runs are computed
  // from them.
  bool extrapolates() const { return timed < iterations; }
  // If so, sets the times of all curves: an iteration takes the mean time of its cell; a warm-up
  // iteration takes the time of D-Sync with the same compression, if that was measured.
  void extrapolate();
  // The cells of each setting, that is, of each number of workers and link. Each becomes a table.
  std::vector<std::span<const Cell>> settings() const;
  // The cell of another algorithm with the same workers and link, if it is done.
  const Cell* beside(const Cell& cell, std::string_view algorithm) const;
  // The other algorithm's mean iteration time divided by this one's.
  std::optional<double> speedup(const Cell& cell, std::string_view over) const;
  // The speedup over D-Sync with the same compression.
  std::optional<double> speedup_at_same_bits(const Cell& cell) const;
};

}  // namespace tandem
