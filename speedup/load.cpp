#include "speedup/load.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/clock.h"

namespace tandem {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

}  // namespace

std::optional<LoadMeter::Reading> LoadMeter::read() {
  Reading r;
  r.wall = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    r.own += seconds(usage.ru_utime) + seconds(usage.ru_stime);
    r.switches += static_cast<double>(usage.ru_nivcsw);
  }
  // Only the cores that this process may use. On a shared machine the others do not matter.
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return {};
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::size_t core = CPU_SETSIZE;
    std::from_chars(line.data() + 3, line.data() + line.size(), core);
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, &usable)) continue;
    std::istringstream fields(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0;
    fields >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> stolen;
    if (!fields) return {};
    r.busy += tick * (user + nice + system);
    r.stolen += tick * stolen;
    ++r.cores;
  }
  if (r.cores == 0) return {};
  return r;
}

LoadMeter::LoadMeter() : begin_(read()) {}

std::optional<Load> LoadMeter::since() const {
  const auto end = read();
  if (!begin_ || !end || end->wall <= begin_->wall) return {};
  // The system counts in ticks of 10 ms, so less than ten of them cannot be told from zero.
  constexpr double kResolution = 0.1;
  const double wall = end->wall - begin_->wall;
  const auto share = [&](double taken) {
    return taken < kResolution ? 0 : taken / (wall * end->cores);
  };
  return Load{.others = share((end->busy - begin_->busy) - (end->own - begin_->own)),
              .stolen = share(end->stolen - begin_->stolen),
              .switches = (end->switches - begin_->switches) / wall};
}

std::string disturbance(std::span<const Load> repeats) {
  if (repeats.empty()) return {};
  const auto most = [&](double Load::*what) { return std::ranges::max(repeats, {}, what).*what; };
  const double least_switches = std::ranges::min(repeats, {}, &Load::switches).switches;
  if (most(&Load::others) > kOthers)
    return fmt::format("other programs took {:.0f}% of the cores' time", 100 * most(&Load::others));
  if (most(&Load::stolen) > kStolen)
    return fmt::format("the hypervisor took {:.0f}% of the cores' time", 100 * most(&Load::stolen));
  if (most(&Load::switches) > std::max(2 * least_switches, least_switches + kSwitches))
    return fmt::format(
        "{:.0f} involuntary context switches per second, but {:.0f} in another repeat",
        most(&Load::switches), least_switches);
  return {};
}

}  // namespace tandem
