#include "layers/models/models.h"

#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {

std::unique_ptr<Layer> mnist_mlp(std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add<Flatten>("flatten")
      .add<Linear>("0", 784, 500, Init::he_normal, random.split(0))
      .add<Relu>("1")
      .add<Linear>("2", 500, 500, Init::he_normal, random.split(2))
      .add<Relu>("3")
      .add<Linear>("4", 500, 10, Init::xavier_normal, random.split(4));
  return model;
}

}  // namespace tandem
