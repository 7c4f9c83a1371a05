// What else the machine did during a measurement.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem {

struct Load {
  double others = 0;    // share of the cores' time that other programs took
  double stolen = 0;    // share that the hypervisor took (steal time)
  double switches = 0;  // involuntary context switches per second of the measured programs
};

// Measures from its construction on. "Own" programs are those that this process has started and
// waited for in the meantime; the cores are those that this process may use.
class LoadMeter {
 public:
  LoadMeter();
  // Nothing if the system does not tell (Linux does, in /proc/stat).
  std::optional<Load> since() const;

 private:
  struct Reading {
    double wall = 0, busy = 0, stolen = 0, own = 0;  // seconds; summed over all cores
    double switches = 0;
    int cores = 0;
  };
  static std::optional<Reading> read();
  std::optional<Reading> begin_;
};

// Why a measurement with such repeats cannot be trusted; empty if it can.
//
// Other programs may take 5% of the cores' time. That makes an iteration that uses all cores about
// 5% longer; repeats on a quiet machine differ by 1%, and the algorithms compared differ by 10% or
// more. Steal time delays our threads directly, so 1% is too much. The number of involuntary
// context switches says little by itself: four workers with two threads each on two cores switch
// all the time, without any other program. But all repeats do the same work, so a repeat with twice
// as many switches as the quietest one, and kSwitches more per second, was disturbed.
inline constexpr double kOthers = 0.05, kStolen = 0.01, kSwitches = 200;
std::string disturbance(std::span<const Load> repeats);

}  // namespace tandem
