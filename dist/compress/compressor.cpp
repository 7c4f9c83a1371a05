#include "dist/compress/compressor.h"

#include "base/error.h"

namespace tandem {

const std::vector<std::string>& compressor_names() {
  static const std::vector<std::string> kNames = {"none", "trunc16", "quant8"};
  return kNames;
}

std::unique_ptr<Compressor> make_compressor(const std::string& name) {
  if (name == "none") return make_none();
  if (name == "trunc16") return make_trunc16();
  if (name == "quant8") return make_quant8();
  throw UserError("there is no compressor named {}", name);
}

}  // namespace tandem
