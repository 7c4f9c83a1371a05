#include "dist/strategy.h"

#include "base/error.h"
#include "dist/d_sync.h"
#include "dist/param_server/ps_sync.h"
#include "dist/pipe_sgd/pipe_sgd.h"
#include "dist/single.h"

namespace tandem {

void Strategy::load_in_flight(std::vector<Gradient> sums) {
  require(sums.empty(), "this strategy has nothing in flight between iterations");
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> kNames = {"single", "d-sync", "ps-sync", "pipe-sgd"};
  return kNames;
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context) {
  if (name == "single") return std::make_unique<Single>(context);
  if (name == "d-sync") return std::make_unique<DSync>(context);
  if (name == "ps-sync") return std::make_unique<PsSync>(context);
  if (name == "pipe-sgd") return std::make_unique<PipeSgd>(context);
  throw UserError("--algo {} is not known", name);
}

}  // namespace tandem
