#include "dist/compress/compressor.h"

#include "dist/compress/none.h"
#include "dist/compress/quant8.h"
#include "dist/compress/trunc16.h"
#include "tensor/error.h"

namespace tandem {

const std::vector<std::string>& compressor_names() {
  static const std::vector<std::string> kNames = {"none", "trunc16", "quant8"};
  return kNames;
}

std::unique_ptr<Compressor> make_compressor(const std::string& name) {
  if (name == "none") return std::make_unique<NoCompression>();
  if (name == "trunc16") return std::make_unique<Trunc16>();
  if (name == "quant8") return std::make_unique<Quant8>();
  throw UserError("--compress {} is not known", name);
}

}  // namespace tandem
