// What else a machine did while something was measured on it.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem {

struct Load {
  double others = 0;    // share of the cores' time that other programs took
  double stolen = 0;    // share that the machine's host took
  double switches = 0;  // involuntary context switches of the programs that ran, per second
};

// Measures from its construction on: programs that are started and waited for meanwhile, against
// the cores that this process may use.
class LoadMeter {
 public:
  LoadMeter();
  // Nothing where the system does not tell (Linux does, in /proc/stat).
  std::optional<Load> since() const;

 private:
  struct Reading {
    double wall = 0, busy = 0, stolen = 0, own = 0;  // seconds; of all cores together
    double switches = 0;
    int cores = 0;
  };
  static std::optional<Reading> read();
  std::optional<Reading> begin_;
};

// Why a measurement with such repeats is not to be trusted; empty if it is.
//
// Others may take 5% of the cores' time: an iteration that computes on all of them becomes longer
// by about that, repeats on a quiet machine differ by 1%, and what is compared differs by 10% and
// more. Stolen time is missing whenever somebody wants to run, so 1% of it is too much. Involuntary
// switches say little by themselves: four workers with two threads each switch all the time on two
// cores, without any other program. But repeats do the same, so one that has twice as many as the
// quietest, and kSwitches more per second, was not alone.
inline constexpr double kOthers = 0.05, kStolen = 0.01, kSwitches = 200;
std::string disturbance(std::span<const Load> repeats);

}  // namespace tandem
