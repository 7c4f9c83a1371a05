// The FLOP of a model. A training step runs on a device that counts operations. The tensors of this
// device have no content, so a step takes milliseconds and no memory, whatever the model.
#pragma once

#include <vector>

#include "layers/layer.h"
#include "simulate/net_table.h"

namespace tandem {

// The trained parameters in the order of their first use, with the FLOP of one [h, w, c] image. The
// products and sums with a parameter count as that parameter's, in forward and in backward.
// Operations without parameters (ReLU, pools, sums of branches, the loss) count as nothing. The
// model is useless afterwards: its initial values are gone.
std::vector<NetTable::Tensor> count_flop(Layer& model, const Shape& image);

}  // namespace tandem
