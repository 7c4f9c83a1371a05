// Reads JSON from files of unknown origin, and shows what is wrong with them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tandem {

// Throws UserError, which does not name the file, if the text is not JSON or nests arrays and
// objects more deeply than any of our formats. (Parsing into an ordered_json instead would take
// time quadratic in the number of an object's names.)
nlohmann::json parse_json(const std::string& text);

// The value of this name in an object. Throws UserError, which does not name the file, if it is not
// there.
const nlohmann::json& member(const nlohmann::json& object, const char* name);

// Whether it is a whole number from 0 to `most`. (get() would convert any number, whatever its
// range.)
bool is_whole(const nlohmann::json& value, std::uint64_t most);

// For a message: one line, without control characters, truncated to `most` bytes.
std::string shown(std::string_view text, std::size_t most = 80);
// The same for a value. Arrays and objects are only named as such.
std::string shown_value(const nlohmann::json& value);

}  // namespace tandem
