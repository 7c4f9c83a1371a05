// What a simulation (simulate/) must know of a net, a device and a host: how long each part of an
// iteration takes. Runs measure it (--profile).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem {

// What a host needs for its part of communication, in seconds per element of the gradient.
struct HostCost {
  double check = 0;     // to check that it is finite
  double compress = 0;  // for every value that a rank sends first, and decompress for every sum
  double decompress = 0;
  double add = 0;  // with (de)compression
  double copy = 0;
  double update = 0;
  double encode_sum = 0;  // for the sum that an owner sends, with a codec that encodes blocks
};

// Forward uses the parameters in this order; backward finishes them in the reverse order.
struct Profile {
  struct Tensor {
    std::string name;
    std::int64_t elements = 0;
    double forward_s = 0;   // from its use to the use of the next one
    double backward_s = 0;  // from when the one after it is finished
  };

  std::string net;         // "ResNet-50"
  std::string source;      // where the times come from
  std::int64_t batch = 1;  // samples of a worker in an iteration
  std::vector<Tensor> tensors;
  std::map<std::string, HostCost> host = {};  // by --compress
  // How long iterations compute, compared with their mean: quantiles in ascending order. Empty:
  // always equally long.
  std::vector<double> spread = {};
  // The same for single iterations, with a value for each of the run's workers. Workers that share
  // cores depend on each other: while one computes longer, another one computes less.
  std::vector<std::vector<double>> iterations = {};

  std::int64_t elements() const;
  double forward_s() const;
  double backward_s() const;
};

}  // namespace tandem
