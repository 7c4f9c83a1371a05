#include "data/image_files.h"

#include <utility>

#include "base/error.h"
#include "data/decode_image.h"
#include "data/resize.h"

namespace tandem {

ImageFiles::ImageFiles(std::vector<std::string> files, const DataSplit& like)
    : files_(std::move(files)),
      shape_(like.test->image_shape()),
      classes_(like.test->classes()),
      short_side_(like.tested_side > 0 ? like.tested_side : shape_[0]) {
  const bool images = shape_[0] == shape_[1] && (shape_[2] == 1 || shape_[2] == 3);
  if (like.test->dtype() != Dtype::u8 || !images)
    throw UserError("this net does not take images, but samples of {}", shape_);
}

std::int32_t ImageFiles::read(std::int64_t index, std::span<std::uint8_t> pixels, Random*) const {
  const Image image = decode_image(files_[static_cast<std::size_t>(index)]);
  const ImageView view{image.pixels.get(), image.height, image.width, 3 * image.width};
  if (shape_[2] == 3) {
    take_middle(view, shape_[0], short_side_, pixels);
    return 0;
  }
  std::vector<std::uint8_t> colours(3 * pixels.size());
  take_middle(view, shape_[0], short_side_, colours);
  for (std::size_t i = 0; i < pixels.size(); ++i)  // brightness, as in television (BT.601)
    pixels[i] = static_cast<std::uint8_t>(
        (299 * colours[3 * i] + 587 * colours[3 * i + 1] + 114 * colours[3 * i + 2] + 500) / 1000);
  return 0;
}

}  // namespace tandem
