// JSON that programs have written. Most of what a test needs of it is compiled once, in json.cpp,
// because it would take a quarter of the time to compile the test.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;

namespace tandem::test {

// Throws nlohmann::json::exception if the text is not JSON.
nlohmann::json json_of(const std::string& text);

}  // namespace tandem::test
