#include "dist/strategy.h"

#include "base/error.h"

namespace tandem {

void Strategy::load_in_flight(std::vector<Gradient> sums) {
  require(sums.empty(), "this strategy has nothing in flight between iterations");
}

}  // namespace tandem
