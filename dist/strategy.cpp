#include "dist/strategy.h"

#include "dist/single.h"
#include "tensor/error.h"

namespace tandem {

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> kNames = {"single"};
  return kNames;
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, Sgd& optimizer, Spans& spans) {
  if (name == "single") return std::make_unique<Single>(optimizer, spans);
  throw UserError("--algo {} is not known", name);
}

}  // namespace tandem
