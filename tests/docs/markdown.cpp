#include "tests/docs/markdown.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/support.h"

namespace fs = std::filesystem;

namespace tandem::test {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

Document read_document(const fs::path& path) {
  static const std::regex link("\\]\\(([^)\\s]+)\\)"), code("`([^`]*)`");
  Document document{.path = path};
  std::istringstream text(read_bytes(path));
  std::string prose;
  bool in_block = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.starts_with("```")) {
      in_block = !in_block;
      if (in_block) document.blocks.push_back({trimmed(line.substr(3)), number, {}});
    } else if (in_block) {
      document.blocks.back().lines.push_back(line);
    } else {
      prose += line + "\n";
    }
  }
  for (std::sregex_iterator at(prose.begin(), prose.end(), code), end; at != end; ++at)
    document.code.push_back((*at)[1]);
  prose = std::regex_replace(prose, code, "code");
  for (std::sregex_iterator at(prose.begin(), prose.end(), link), end; at != end; ++at)
    document.links.push_back((*at)[1]);
  return document;
}

std::vector<fs::path> documents_in(const fs::path& folder, bool deep) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
    if (deep && entry.is_directory())
      for (const fs::path& below : documents_in(entry.path(), deep)) found.push_back(below);
  }
  std::ranges::sort(found);
  return found;
}

fs::path target_of(const Document& document, const std::string& link) {
  if (link.find("://") != std::string::npos) return {};
  const std::string file = link.substr(0, link.find('#'));
  return file.empty() ? document.path : document.path.parent_path() / file;
}

}  // namespace tandem::test
