// The images of a training or test set: FOLDER/CLASS/*.jpg.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/left_out_files.h"

namespace tandem {

class ImageList {
 public:
  // The folders in `folder`, sorted.
  static std::vector<std::string> classes_of(const std::filesystem::path& folder);

  // All images below `folder`, by class, then by name. Throws UserError for a class that is not
  // one of `classes`, and for one without images.
  ImageList(std::filesystem::path folder, const std::vector<std::string>& classes);

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  std::filesystem::path path(std::int64_t index) const;
  // A hash of all names and labels, and of the sizes of some files.
  std::uint64_t fingerprint() const;
  std::int32_t label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }
  // Files below `folder` that are not in the list.
  const LeftOutFiles& left_out() const { return left_out_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> classes_;
  // A million short strings would take three times the memory.
  std::string names_;                // concatenated
  std::vector<std::size_t> begins_;  // of each name, and the end of the last
  std::vector<std::int32_t> labels_;
  LeftOutFiles left_out_;
};

}  // namespace tandem
