// Counts the files in a set's folder that are not used, so that nobody unknowingly trains on half a
// set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tandem {

class LeftOutFiles {
 public:
  // Adds a file, or all files in and below a folder. Files that systems leave in folders (names
  // with a leading dot, Thumbs.db) are ignored. Throws std::filesystem::filesystem_error.
  void add(const std::filesystem::directory_entry& entry);
  void add_folder(const std::filesystem::directory_entry& entry);

  std::int64_t count() const;
  // "FOLDER: 14 files left out: 12 *.webp, 2 in sub-folders, such as a/b.webp", where b.webp is in
  // FOLDER/a; empty if none is.
  std::string text(const std::filesystem::path& folder) const;

 private:
  void note(const std::filesystem::path& path);

  std::map<std::string, std::int64_t> by_ending_;  // ".webp"; files as they are, not in folders
  std::int64_t in_folders_ = 0;
  std::filesystem::path first_;  // by name, so that it does not depend on the file system
};

}  // namespace tandem
