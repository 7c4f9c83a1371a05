#include "base/error.h"

namespace tandem {

void broken_contract(fmt::string_view message, fmt::format_args args) {
  throw std::logic_error(fmt::vformat(message, args));
}

}  // namespace tandem
