// The nets that a simulation knows by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "simulate/net_table.h"

namespace tandem {

const std::vector<std::string>& net_names();

// Counted from the model itself (simulate/count_flop.h), so a program needs no file. profiles/ has
// the same tables. Throws UserError, which lists the names, if there is no such net.
NetTable net_named(const std::string& name);

// Nets that only simulations use, for 1,000 classes.

// Inception-v4 (Szegedy et al., 2017) for images of 299 pixels: 42,679,816 parameters.
std::unique_ptr<Layer> inception_v4();
// DenseNet-121 (Huang et al., 2017) for images of 224 pixels: 7,978,856 parameters.
std::unique_ptr<Layer> densenet121();

// A translator of sentences with LSTMs and attention, as the paper of P3 trains it with Sockeye:
// 2 layers on each side, 512 wide. For a pair of sentences of 20 words each.
std::vector<NetTable::Tensor> sockeye();

}  // namespace tandem
