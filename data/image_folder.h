// Photographs in folders, in the usual layout of ImageNet:
//
//   FOLDER/train/CLASS/*.jpg    .jpg, .jpeg and .png, also in capitals
//   FOLDER/val/CLASS/*.jpg
//
// They are decoded when they are read, so a set may be much larger than memory.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "data/decode_image.h"
#include "data/resize.h"

namespace tandem {

struct ImageFolderOptions {
  std::int64_t image_size = 224;
  // What to do with a file that cannot be decoded. false: end the run with an error that names it.
  // true: note it in DataSplit::skipped. Training then takes the next file (by class, then by name)
  // that can be decoded, which depends only on the files. A test leaves it out.
  bool skip_bad_images = false;
  std::int64_t max_pixels = kMaxPixels;  // a larger image counts as one that cannot be decoded
};

// Classes are the folders of train, sorted by name. Training takes a random part of an image
// (random_part, below), scales it to image_size × image_size, and flips it with probability 1/2.
// Testing scales the image so that its short side is image_size · 256/224, and takes the centre.
// Throws UserError for folders that are missing, unreadable, empty or inconsistent with each other.
DataSplit open_image_folder(const std::string& folder, const ImageFolderOptions& options);

// The part of an image to train on, as chosen for Inception (Szegedy et al., 2015) and by
// torchvision's RandomResizedCrop: 8 to 100% of the area, aspect ratio 3/4 to 4/3; the centre of
// the image if ten attempts do not fit.
Window random_part(std::int64_t height, std::int64_t width, Random& random);

}  // namespace tandem
