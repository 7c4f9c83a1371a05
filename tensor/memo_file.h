// A file of keys and values, one per line, in which a run stores results for later runs. Several
// runs may read it and append to it at the same time. It only saves time: if it cannot be read or
// written, or a line is damaged, the value is computed again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

namespace tandem {

// The folder for such files: TANDEM_CACHE, else `tandem` in the user's cache. Empty, so that
// nothing is kept, if TANDEM_CACHE is empty or the user has no home.
std::filesystem::path cache_folder();

class MemoFile {
 public:
  explicit MemoFile(std::filesystem::path path);  // empty: nothing is kept

  // The value as of construction; the last one if there are several.
  std::optional<std::string> find(const std::string& key) const;
  // Stores a value for later runs. Neither may contain tabs or line breaks.
  void add(const std::string& key, const std::string& value) const;

 private:
  std::filesystem::path path_;
  std::unordered_map<std::string, std::string> found_;
};

}  // namespace tandem
