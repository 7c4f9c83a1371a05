// Escapes text for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Also safe inside quoted attributes.
inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  return result;
}

}  // namespace tandem
