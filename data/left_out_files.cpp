#include "data/left_out_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_of_no_interest(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini";
}

}  // namespace

void LeftOutFiles::add(const fs::directory_entry& entry) {
  if (is_of_no_interest(entry.path())) return;
  std::string ending = entry.path().extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  ++by_ending_[ending];
  note(entry.path());
}

void LeftOutFiles::add_folder(const fs::directory_entry& entry) {
  if (is_of_no_interest(entry.path())) return;
  for (auto inside = fs::recursive_directory_iterator(entry);
       inside != fs::recursive_directory_iterator(); ++inside) {
    if (is_of_no_interest(inside->path())) {
      inside.disable_recursion_pending();
    } else if (!inside->is_directory()) {
      ++in_folders_;
      note(inside->path());
    }
  }
}

void LeftOutFiles::note(const fs::path& path) {
  if (first_.empty() || path < first_) first_ = path;
}

std::int64_t LeftOutFiles::count() const {
  std::int64_t sum = in_folders_;
  for (const auto& [ending, files] : by_ending_) sum += files;
  return sum;
}

std::string LeftOutFiles::text(const fs::path& folder) const {
  if (count() == 0) return "";
  std::vector<std::pair<std::string, std::int64_t>> most(by_ending_.begin(), by_ending_.end());
  std::ranges::stable_sort(most, std::greater{}, [](const auto& entry) { return entry.second; });
  constexpr std::size_t kNamed = 4;
  std::int64_t others = 0;
  for (; most.size() > kNamed; most.pop_back()) others += most.back().second;

  std::vector<std::string> parts;
  for (const auto& [ending, files] : most)
    parts.push_back(ending.empty() ? fmt::format("{} without an extension", files)
                                   : fmt::format("{} *{}", files, ending));
  if (others > 0) parts.push_back(fmt::format("{} others", others));
  if (in_folders_ > 0) parts.push_back(fmt::format("{} in sub-folders", in_folders_));
  return fmt::format("{}: {} file{} left out: {}, such as {}", folder.string(), count(),
                     count() == 1 ? "" : "s", fmt::join(parts, ", "),
                     first_.lexically_relative(folder).string());
}

}  // namespace tandem
