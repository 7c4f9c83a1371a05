#include "speedup/load.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("speedup: a disturbed measurement is detected") {
  using Loads = std::vector<Load>;
  CHECK(disturbance({}) == "");
  CHECK(disturbance(Loads{{.others = 0.04, .stolen = 0.009, .switches = 5000}}) == "");
  CHECK(disturbance(Loads{{.others = 0.01}, {.others = 0.31}}) ==
        "other programs took 31% of the cores' time");
  CHECK(disturbance(Loads{{.stolen = 0.02}}) == "the hypervisor took 2% of the cores' time");
  CHECK(disturbance(Loads{{.switches = 3000}, {.switches = 5000}}) == "");
  CHECK(disturbance(Loads{{.switches = 10}, {.switches = 100}}) == "");
  CHECK(disturbance(Loads{{.switches = 6100}, {.switches = 3000}}) ==
        "6100 involuntary context switches per second, but 3000 in another repeat");
}

TEST_CASE("speedup: the meter counts a running program that was not waited for") {
  const LoadMeter meter;
  const Process busy({"sh", "-c", "while :; do :; done"});
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Load> load;
  do load = meter.since();
  while (load && load->others == 0 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  REQUIRE(load);
  CHECK(load->others > 0);
  CHECK(load->stolen >= 0);
  CHECK(load->switches >= 0);
}
