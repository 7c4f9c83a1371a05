// What a simulation must know of a net before a device is chosen: its parameter tensors, and how
// much computing each of them takes. As a text file:
//
//   tandem net 1
//   net alexnet
//   source AlexNet of layers/models …
//   tensor features.0.weight 23232 140553600 140553600
//
// A tensor has its name, elements, and the FLOP of forward and backward for one sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct NetTable {
  struct Tensor {
    std::string name;
    std::int64_t elements = 0;
    double forward_flop = 0, backward_flop = 0;  // of one sample; a multiply-add is two
  };

  std::string net;              // one word, as in net_names(): "resnet50"
  std::string source;           // where the numbers come from
  std::vector<Tensor> tensors;  // in the order of their first use in forward

  std::int64_t parameters() const;
  double forward_flop() const;
  double backward_flop() const;
};

std::string to_text(const NetTable& table);
// Throws UserError, which names the file and the line, if it is not such a table.
NetTable read_net_table(const std::filesystem::path& path);

}  // namespace tandem
