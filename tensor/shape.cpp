#include "tensor/shape.h"

namespace tandem {

std::string Shape::str() const {
  std::string text = "[";
  for (const std::int64_t size : sizes())
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace tandem
