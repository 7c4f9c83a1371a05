#include "tests/json.h"

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<nlohmann::json>;

namespace tandem::test {

nlohmann::json json_of(const std::string& text) { return nlohmann::json::parse(text); }

}  // namespace tandem::test
