#include "layers/init.h"

#include <cmath>

#include "base/error.h"

namespace tandem {

std::vector<float> initial_values(Init init, const Shape& weight, Random random) {
  std::vector<float> values(static_cast<std::size_t>(weight.count()), 0.0F);
  if (init == Init::zeros || values.empty()) return values;

  require(weight.rank() >= 2, "fan-in and fan-out need a weight of at least two dimensions, not {}",
          weight);
  // A filter [out, h, w, in] feeds h·w·out outputs from every input.
  const std::int64_t fan_in = weight.count() / weight[0];
  const std::int64_t fan_out = weight.count() / weight[-1];
  const bool uniform =
      init == Init::he_uniform || init == Init::xavier_uniform || init == Init::lecun_uniform;
  const auto variance = [&] {
    switch (init) {
      case Init::xavier_uniform:
      case Init::xavier_normal:
        return 2.0 / static_cast<double>(fan_in + fan_out);
      case Init::he_normal_fan_out:
        return 2.0 / static_cast<double>(fan_out);
      case Init::lecun_uniform:
        return 1.0 / static_cast<double>(fan_in);
      default:
        return 2.0 / static_cast<double>(fan_in);
    }
  }();

  // A uniform distribution on [-a, a) has the variance a²/3.
  const double scale = std::sqrt(uniform ? 3 * variance : variance);
  for (float& value : values)
    value = static_cast<float>(scale * (uniform ? random.uniform(-1, 1) : random.normal()));
  return values;
}

}  // namespace tandem
