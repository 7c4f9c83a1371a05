#pragma once

#include <string>

#include "base/error.h"
#include "tensor/shape.h"

namespace tandem {

// Throws UserError if an image [h, w, c] has fewer than `least` pixels in height or width.
inline void require_image(const std::string& net, const Shape& image, std::int64_t least) {
  require(image.rank() == 3, "an image is [height, width, channels], not {}", image);
  if (image[0] < least || image[1] < least)
    throw UserError("{} needs images of at least {} x {} pixels, not {} x {}", net, least, least,
                    image[1], image[0]);
}

}  // namespace tandem
