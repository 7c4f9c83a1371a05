// The options that every training program shares. A program may also set them itself: train()
// checks them (check_options.h), and the defaults work. Beyond that, the command line refuses
// options that were given but have no effect, such as --pipe-k with d-sync. Only the command line
// can tell a given value from the default; train() ignores such options.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "autograd/sgd.h"
#include "base/names.h"
#include "dist/strategy_options.h"
#include "tensor/precision.h"

namespace tandem {

// For TrainOptions::verify_every.
inline constexpr std::int64_t kAtEveryTest = -1;

// For TrainOptions::resume: the newest checkpoint of --checkpoint; if there is none, from the
// beginning.
inline constexpr const char* kResumeAuto = "auto";

enum class Switch { off, on };
template <>
struct NamesOf<Switch> {
  static constexpr const char* names[] = {"off", "on"};
};

// Every field but `algo_options` and `own` has a row in option_table.cpp.
struct TrainOptions {
  // Training
  std::int64_t batch = 100;  // global
  std::int64_t epochs = 10;
  std::int64_t iterations = 0;  // instead of epochs; 0: as many as the epochs have
  std::int64_t test_every = 0;  // iterations; 0: after every epoch
  bool objective = false;       // tests also measure the loss of the whole training set
  std::uint64_t seed = 1;
  double label_smoothing = 0;

  // Optimizer
  double lr = 0.05;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  Schedule::Kind lr_schedule = Schedule::Kind::constant;
  std::int64_t lr_step_epochs = 30;
  double lr_step_factor = 0.1;
  std::int64_t lr_warmup_iterations = 0;

  // Device
  DeviceKind device = DeviceKind::cpu;
  Precision precision = Precision::fp32;
  Switch graphs = Switch::on;  // on a GPU: record steps and replay them
  bool deterministic = false;

  // Workers
  std::string algo;  // empty: single for one worker, d-sync for several
  int workers = 0;   // 0: one; under mpiexec, the number of processes less the servers
  // Options that only some algorithms have, such as {"--pipe-k", 3}: see dist/strategies.cpp.
  StrategyOptions algo_options = {};
  std::string compress = "none";
  bool no_error_feedback = false;
  std::string slow_rank;  // "3=0.5": rank 3 computes at half the speed; empty: none does
  std::string link = "none";
  int ranks_per_node = 0;  // 0: one over threads; over MPI, those of a machine
  // The workers compare their weights every so many iterations and at the end. 0: never.
  std::int64_t verify_every = kAtEveryTest;
  double stall_timeout = 60;  // seconds
  int threads = 0;            // per worker; 0: the machine's cores shared by the workers

  // Files
  std::string data;  // empty: the application's default
  std::string load, save, metrics, csv, summary, trace, profile;
  std::vector<std::string> predict;  // image files; not empty: nothing is trained or tested
  bool json = false;                 // for predict
  std::string plan;  // read if it exists, else written; for algorithms that plan by measurement
  bool timeline = false, quiet = false;
  double timeline_ms = 0;  // per letter; 0: the timeline fills its lines

  // Checkpoints
  std::string checkpoint;             // a folder; empty: none are written
  std::int64_t checkpoint_every = 0;  // iterations; 0: by time
  double checkpoint_seconds = 600;
  std::int64_t keep = 2;       // how many checkpoints are kept
  std::string resume;          // a folder, or kResumeAuto
  std::string resume_weights;  // a folder
  double mtbf = 0;             // mean seconds between failures; 0: not known

  // The application's own options, by their names in the summary.
  struct Own {
    std::variant<bool, std::int64_t, std::string> value;
    bool ranks_differ = false;  // whether ranks may have different values
  };
  std::map<std::string, Own> own = {};

  bool keeps_spans() const { return timeline || !trace.empty(); }
};

// An option that only one application has.
struct OwnOption {
  std::string name;  // "--depth"
  // The variable to set; it holds the default. --help does not show the defaults 0 and "".
  std::variant<bool*, std::int64_t*, std::string*> value;
  std::string value_name;                    // "N"
  std::string help;                          // lines of 55 characters at most
  std::vector<std::string> choices = {};     // allowed values of a string; empty: any
  std::int64_t least = 1, most = 1'000'000;  // allowed range of a number
  bool ranks_differ = false;  // for a path, or an option that does not change the result
};

// The parts of --help that differ between applications.
struct AppHelp {
  std::string about;
  std::string data;  // for --data
  std::vector<OwnOption> own = {};
};

// Reads the command line into `options`, which hold the application's defaults, and into the
// application's own options. Returns false after --help or --version, which it has printed. Throws
// UserError, which names the option.
bool parse_options(int argc, char** argv, const AppHelp& help, TrainOptions& options);

}  // namespace tandem
