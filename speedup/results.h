// What a comparison of algorithms came to: one cell for each algorithm, link and number of workers.
// It is kept as results.json; tables, figures and the report are made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dist/timing/model.h"
#include "speedup/load.h"

namespace tandem {

// A way to train, by the name that the paper gives it: a row of a table.
struct Algorithm {
  std::string name;  // "Pipe-SGD+T"
  std::string algo;  // as --algo
  std::string compress;
  bool by_default = true;  // else it is compared only where it is asked for
};
const std::vector<Algorithm>& all_algorithms();  // from dist/strategies.h, in its order
// "Pipe-SGD" with "trunc16" is Pipe-SGD+T.
std::string row_name(const std::string& label, const std::string& compress);

// What the mean iteration of a worker's compute thread was spent on, and what its communication
// thread did behind it. Without `hidden`, the parts make up the iteration.
struct Breakdown {
  double compute = 0;   // data, forward, backward, update
  double compress = 0;  // where the compute thread waits for it
  double exposed = 0;   // communication, with plain adding, that the compute thread waits for
  double other = 0;     // all else: the other thread to begin, waking up, what lies between spans
  double hidden = 0;    // communication, adding and compression behind the computation

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

// A test during the training.
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

  // All below is of a cell that has been run. `failure` says why there is nothing else.
  std::string failure;
  // Of a training that was tested, without a link.
  double test_accuracy = 0;  // at the end
  double train_loss = 0;
  std::string weights_hash;
  std::int64_t warmup = 0;  // iterations of d-sync before pipe-sgd opens its pipeline
  std::vector<CurvePoint> curve;
  // Of trainings that were timed.
  std::vector<double> repeats_ms;      // the mean iteration of each repeat
  double median_ms = 0;                // of the iterations of all repeats
  Breakdown breakdown;                 // milliseconds; of all repeats
  std::optional<double> predicted_ms;  // by Eq. 2 to 6
  std::optional<ModelInput> model;     // that the prediction is made from
  double bytes_per_iteration = 0;      // sent by all ranks together
  std::vector<Load> loads;             // during each repeat; empty where the system does not tell
  std::vector<TimelineSpan> timeline;  // two iterations near the mean

  std::string setting() const;  // "4 workers, link 1gbe"
  bool done() const { return failure.empty() && !repeats_ms.empty(); }
  double iteration_ms() const;              // the headline: the mean of the repeats' means
  std::optional<double> spread_ms() const;  // half of what lies between the repeats, if any
  std::string disturbed() const { return disturbance(loads); }
  // Seconds of training until the first of three tests in a row that reached it, or of as many as
  // there were till the end.
  std::optional<double> seconds_to(double accuracy) const;
  // The highest accuracy for which there is an answer.
  double reached() const;
};

struct Environment {
  std::string tandem;  // version and commit
  std::string processor, memory, system, gpu,
      versions;  // of the machine that ran it; gpu may be empty
  int cores = 0;
  std::string transport;  // "threads" or "MPI"
  std::string date;       // of the last cell
  std::string command;
};

struct Results {
  std::string bench;  // the program
  std::string net;    // for people: "MNIST-MLP"
  std::string data, device, precision;
  std::string options;  // that the program got besides
  std::int64_t batch = 0;
  std::int64_t iterations = 0, timed = 0;  // of a training, and those that were timed over a link
  std::int64_t repeats = 0, tests = 0, parameters = 0;
  std::uint64_t seed = 0;
  double target_accuracy = 0;
  double optimum = 0;  // the least objective there is, for the figure of the gap; 0: not known
  Environment environment;
  std::vector<Cell> cells;  // by workers, then link, then algorithm

  // Whether times of trainings follow from those of fewer iterations.
  bool extrapolates() const { return timed < iterations; }
  // Sets the times of all curves where that is so: an iteration takes as long as the mean one of
  // its cell, one of the warm-up as long as with D-Sync and the same compression, if that is there.
  void extrapolate();
  // The cells of each number of workers and link: a table each.
  std::vector<std::span<const Cell>> settings() const;
  // The cell of another algorithm among the same workers and over the same link, if it is done.
  const Cell* beside(const Cell& cell, std::string_view algorithm) const;
  // How many times as fast as that an iteration is.
  std::optional<double> speedup(const Cell& cell, std::string_view over) const;
  // Over D-Sync with the same compression.
  std::optional<double> speedup_at_same_bits(const Cell& cell) const;
};

// The text with anything replaced that JSON cannot hold because it is not UTF-8.
std::string valid_text(const std::string& text);

std::string to_json(const Results& results);
// Throws UserError, naming the file, if it is not one of ours.
Results read_results(const std::string& path);

}  // namespace tandem
