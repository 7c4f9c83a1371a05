// What one run has found out and later ones need not find out again: a file of keys and values, one
// line each. Runs may share it and add to it at the same time. It only saves time: where it cannot
// be read or written, and for lines that were damaged, the value is found out again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

namespace tandem {

// Where such files are: the folder in TANDEM_CACHE, else `tandem` in the user's cache. Empty, and
// nothing is kept, where TANDEM_CACHE is set to nothing or the user has no home.
std::filesystem::path cache_folder();

class MemoFile {
 public:
  explicit MemoFile(std::filesystem::path path);  // empty: nothing is kept

  // What was there at construction; of several values, the last one.
  std::optional<std::string> find(const std::string& key) const;
  // For later runs. Neither has tabs or line breaks.
  void add(const std::string& key, const std::string& value) const;

 private:
  std::filesystem::path path_;
  std::unordered_map<std::string, std::string> found_;
};

}  // namespace tandem
