// How fast devices train, for simulations of machines that are not here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dist/timing/profile.h"
#include "simulate/net_table.h"

namespace tandem {

struct DeviceSpeed {
  std::string name;       // "k80"
  std::string source;     // where the numbers come from, and what is estimated
  double flop_per_s = 0;  // that training reaches, not the peak; in f32 unless the name says more
  // Samples per second where somebody has measured a net.
  std::map<std::string, double> samples_per_s = {};
};

const std::vector<DeviceSpeed>& device_speeds();
std::vector<std::string> device_speed_names();
// Throws UserError, which lists the names, if there is no such device.
const DeviceSpeed& device_speed_named(const std::string& name);

// What the net takes on the device: forward and backward of a sample take 1 / samples_per_s in all
// if that is known, else as long as their FLOP take at flop_per_s. Both are divided among the
// tensors in proportion to their FLOP. The profile knows no host and no spread.
Profile profile_of(const NetTable& net, const DeviceSpeed& device, std::int64_t batch);

}  // namespace tandem
