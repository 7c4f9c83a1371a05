// What the applications for photographs share: where the images come from, and how they are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/options.h"

namespace tandem {

struct ImageOptions {
  std::int64_t image_size = 0;  // pixels each way; 0: 224
  bool skip_bad_images = false;
  std::int64_t max_pixels = 0;      // of an image file; 0: kMaxPixels
  std::int64_t loader_threads = 0;  // 0: as many as suit the set

  std::vector<OwnOption> own();  // for AppHelp; `this` must stay where it is
};

inline constexpr const char* kImagesHelp =
    "Folder with train/CLASS/*.jpg and val/CLASS/*.jpg (or\n"
    ".jpeg, .png), or generated images to measure speed.\n"
    "Default: datasets/imagenet if it exists, else\n"
    "synthetic";

// What --data means for photographs: a folder, "synthetic", or, when empty, datasets/imagenet if it
// is there, else synthetic. Throws UserError for what is missing or does not go together.
DataSplit open_images(const std::string& data, const ImageOptions& options);

}  // namespace tandem
