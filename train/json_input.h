// Reading JSON out of a file that anybody may have made, and showing what is wrong with it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tandem {

// Throws UserError, which does not name the file, if the text is not JSON or has arrays and objects
// nested more deeply than any format of ours. (Reading an ordered_json instead takes time that
// grows with the square of an object's names.)
nlohmann::json parse_json(const std::string& text);

// For a message: on one line, without control characters, and cut where it is long.
std::string shown(std::string_view text, std::size_t most = 80);
// The same of a value; arrays and objects are only called so.
std::string shown_value(const nlohmann::json& value);

}  // namespace tandem
