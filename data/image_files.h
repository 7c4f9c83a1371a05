// Single image files, without labels, in the form in which a data set's tests see its images.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace tandem {

class ImageFiles : public Dataset {
 public:
  // `like` gives shape, classes and scale. Throws UserError if it does not hold pixels.
  ImageFiles(std::vector<std::string> files, const DataSplit& like);

  std::int64_t size() const override { return std::ssize(files_); }
  Shape image_shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  // Decodes the file. Throws UserError, which names it, if that fails. The label means nothing.
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels,
                    Random* random) const override;

 private:
  std::vector<std::string> files_;
  Shape shape_;
  std::int64_t classes_, short_side_;
};

}  // namespace tandem
