#include "data/image_list.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_image_name(const std::string& name) {
  if (name.starts_with('.')) return false;  // metadata of other systems
  std::string extension = fs::path(name).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// The sorted names in a folder of those entries that `wanted` accepts.
template <class Wanted>
std::vector<std::string> names_in(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (wanted(entry)) names.push_back(entry.path().filename().string());
  } catch (const fs::filesystem_error& e) {
    throw UserError("cannot read the folder {}: {}", folder.string(), e.code().message());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<std::string> ImageList::classes_of(const fs::path& folder) {
  return names_in(folder, [](const fs::directory_entry& entry) {
    return entry.is_directory() && !entry.path().filename().string().starts_with('.');
  });
}

ImageList::ImageList(fs::path folder, const std::vector<std::string>& classes)
    : folder_(std::move(folder)), classes_(classes) {
  begins_.push_back(0);
  names_in(folder_, [&](const fs::directory_entry& entry) {  // files next to the class folders
    if (!entry.is_directory()) left_out_.add(entry);
    return false;
  });
  for (const std::string& name : classes_of(folder_)) {
    const auto found = std::ranges::lower_bound(classes_, name);
    if (found == classes_.end() || *found != name)
      throw UserError("{} is a class that the training set does not have",
                      (folder_ / name).string());
    const auto files = names_in(folder_ / name, [&](const fs::directory_entry& entry) {
      // A dangling link counts as a broken image, not as a missing one.
      const bool is_file = entry.is_regular_file() || !entry.exists();
      if (is_file && is_image_name(entry.path().filename().string())) return true;
      entry.is_directory() ? left_out_.add_folder(entry) : left_out_.add(entry);
      return false;
    });
    if (files.empty())
      throw UserError("the folder {} has no images (.jpg, .jpeg or .png)",
                      (folder_ / name).string());
    for (const std::string& file : files) {
      names_ += file;
      begins_.push_back(names_.size());
      labels_.push_back(static_cast<std::int32_t>(found - classes_.begin()));
    }
  }
  if (labels_.empty()) throw UserError("{} has no class folders with images", folder_.string());
}

std::uint64_t ImageList::fingerprint() const {
  std::uint64_t hash = hash_of(std::as_bytes(std::span(names_)));
  hash = hash_of(std::as_bytes(std::span(labels_)), hash);
  constexpr std::int64_t kFiles = 16;
  for (std::int64_t i = 0; i < std::min(kFiles, size()); ++i) {
    std::error_code error;  // a broken file is reported when it is read
    const std::uintmax_t bytes = fs::file_size(path(i * size() / std::min(kFiles, size())), error);
    hash = hash_of(std::as_bytes(std::span(&bytes, 1)), hash);
  }
  return hash;
}

fs::path ImageList::path(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  require(i < labels_.size(), "there is no image {} of {}", index, size());
  return folder_ / classes_[static_cast<std::size_t>(labels_[i])] /
         std::string_view(names_).substr(begins_[i], begins_[i + 1] - begins_[i]);
}

}  // namespace tandem
