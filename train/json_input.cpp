#include "train/json_input.h"

#include <algorithm>

#include "base/error.h"

namespace tandem {

using Json = nlohmann::json;

namespace {

// How deeply arrays and objects are nested, in valid JSON.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return deepest;
}

}  // namespace

// Checks the depth first, because the library's parser callback, which could also stop it, makes
// parsing quadratic in an array's length.
Json parse_json(const std::string& text) {
  constexpr int kMostDepth = 16;
  if (depth_of(text) > kMostDepth)
    throw UserError("its arrays and objects are nested more than {} deep", kMostDepth);
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    throw UserError("it is not JSON: {}", shown(e.what(), 200));
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) throw UserError("it lacks \"{}\"", name);
  return *found;
}

bool is_whole(const nlohmann::json& value, std::uint64_t most) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
}

std::string shown(std::string_view text, std::size_t most) {
  const bool cut = text.size() > most;
  if (cut) {
    text = text.substr(0, most);
    // Does not cut a UTF-8 character in two.
    constexpr unsigned char kContinuationBits = 0xC0, kContinuation = 0x80;
    while (!text.empty() &&
           (static_cast<unsigned char>(text.back()) & kContinuationBits) == kContinuation)
      text.remove_suffix(1);
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= kContinuationBits)
      text.remove_suffix(1);
  }
  std::string result(text);
  for (char& c : result)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return cut ? result + "..." : result;
}

std::string shown_value(const Json& value) {
  if (value.is_string()) return '"' + shown(value.get_ref<const std::string&>()) + '"';
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return value.dump();
}

}  // namespace tandem
