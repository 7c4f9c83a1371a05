// Reads documents for the tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::test {

using Lines = std::vector<std::string>;

// What stands between ```LANGUAGE and ```.
struct CodeBlock {
  std::string language;
  int line = 0;  // of the document, where it begins
  Lines lines;
};

struct Document {
  std::filesystem::path path;
  std::vector<CodeBlock> blocks;
  Lines code;   // what stands between single backticks, outside of blocks
  Lines links;  // targets as they are written, of text outside of code
};

Document read_document(const std::filesystem::path& path);

// All *.md files of a folder, by name; with the folders below it if `deep`.
std::vector<std::filesystem::path> documents_in(const std::filesystem::path& folder, bool deep);

// Where the document's link points, without its part behind #; empty if it leaves the repository.
std::filesystem::path target_of(const Document& document, const std::string& link);

std::string trimmed(const std::string& text);

}  // namespace tandem::test
