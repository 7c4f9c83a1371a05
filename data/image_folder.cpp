#include "data/image_folder.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "data/image_list.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// e^x for |x| < 0.3, computed only with + - * /, so that crops are the same on every platform.
double portable_exp(double x) {
  double sum = 1;
  for (int k = 12; k >= 1; --k) sum = 1 + x / k * sum;
  return sum;
}

std::int64_t nearest(double x) { return static_cast<std::int64_t>(std::floor(x + 0.5)); }

std::int64_t tested_side(std::int64_t size) { return size * 256 / 224; }

void take_random_part(const ImageView& image, std::int64_t size, Random& random,
                      std::span<std::uint8_t> out) {
  const Window part = random_part(image.height, image.width, random);
  resize(image.crop(part.top, part.left, part.height, part.width), size, size, {0, 0, size, size},
         out);
  if (random.below(2) == 1) flip_horizontally(out, {size, size, 3});
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const fs::path& folder, const std::vector<std::string>& classes,
              const ImageFolderOptions& options, std::shared_ptr<SkippedFiles> skipped)
      : files_(folder, classes),
        folder_(folder.string()),
        classes_(std::ssize(classes)),
        size_(options.image_size),
        max_pixels_(options.max_pixels),
        skipped_(std::move(skipped)) {}

  // One line about the files in the folder that are not in the set; empty if there are none.
  std::string left_out() const { return files_.left_out().text(folder_); }

  std::int64_t size() const override { return files_.size(); }
  Shape image_shape() const override { return {size_, size_, 3}; }
  std::int64_t classes() const override { return classes_; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels,
                    Random* random) const override {
    const auto [image, label] = random ? decode_or_next(index) : decode_or_leave_out(index);
    if (label == kLeftOut) {
      std::ranges::fill(pixels, std::uint8_t{0});
      return label;
    }
    const ImageView view{image.pixels.get(), image.height, image.width, 3 * image.width};
    random ? take_random_part(view, size_, *random, pixels)
           : take_middle(view, size_, tested_side(size_), pixels);
    return label;
  }

  std::uint64_t fingerprint() const override { return files_.fingerprint(); }

 private:
  std::pair<Image, std::int32_t> decode(std::int64_t index) const {
    return {decode_image(files_.path(index), max_pixels_), files_.label(index)};
  }

  std::pair<Image, std::int32_t> decode_or_leave_out(std::int64_t index) const {
    if (!skipped_) return decode(index);
    try {
      return decode(index);
    } catch (const UserError& e) {
      skipped_->add(e.what());
      return {Image{}, kLeftOut};
    }
  }

  std::pair<Image, std::int32_t> decode_or_next(std::int64_t index) const {
    for (std::int64_t tried = 0; tried < size(); ++tried, index = (index + 1) % size()) {
      auto found = decode_or_leave_out(index);
      if (found.second != kLeftOut) return found;
    }
    throw UserError("none of the {} images in {} can be decoded", size(), folder_);
  }

  ImageList files_;
  std::string folder_;
  std::int64_t classes_, size_, max_pixels_;
  std::shared_ptr<SkippedFiles> skipped_;  // null: a broken image ends the run
};

void check_is_folder(const fs::path& folder, const std::string& what) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) {
    if (error && error != std::errc::no_such_file_or_directory)
      throw UserError("cannot open {}: {}", folder.string(), error.message());
    throw UserError(
        "{} {} does not exist; images are expected in train/CLASS/*.jpg and "
        "val/CLASS/*.jpg (or .jpeg, .png)",
        what, folder.string());
  }
  if (!fs::is_directory(status)) throw UserError("{} is not a folder", folder.string());
}

}  // namespace

Window random_part(std::int64_t height, std::int64_t width, Random& random) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double log_ratio = portable_log(4.0 / 3.0);
  const auto within = [&](std::int64_t room) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room + 1)));
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(0.08, 1);
    const double ratio = portable_exp(random.uniform(-log_ratio, log_ratio));
    const std::int64_t w = nearest(std::sqrt(target * ratio)),
                       h = nearest(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const std::int64_t top = within(height - h);
    return {top, within(width - w), h, w};
  }
  const std::int64_t h =
      std::min(height, std::max<std::int64_t>(1, nearest(static_cast<double>(width) * 4 / 3)));
  const std::int64_t w =
      std::min(width, std::max<std::int64_t>(1, nearest(static_cast<double>(height) * 4 / 3)));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

DataSplit open_image_folder(const std::string& folder, const ImageFolderOptions& options) {
  if (options.image_size < 1)
    throw UserError("--image-size {} is not possible", options.image_size);
  const fs::path train = fs::path(folder) / "train", val = fs::path(folder) / "val";
  check_is_folder(folder, "the data folder");
  check_is_folder(train, "the folder of the training images");
  check_is_folder(val, "the folder of the test images");
  const auto classes = ImageList::classes_of(train);
  const auto skipped = options.skip_bad_images ? std::make_shared<SkippedFiles>() : nullptr;
  const auto half = [&](const fs::path& path) {
    return std::make_shared<ImageFolder>(path, classes, options, skipped);
  };
  const auto training = half(train), test = half(val);
  std::vector<std::string> left_out;
  for (const auto& set : {training, test})
    if (std::string line = set->left_out(); !line.empty()) left_out.push_back(std::move(line));
  return {.train = training,
          .test = test,
          .normalisation = imagenet_normalisation(),
          .description = fmt::format("{} ({} classes)", folder, classes.size()),
          .loader_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
          .classes = classes,
          .tested_side = tested_side(options.image_size),
          .skipped = skipped,
          .left_out = std::move(left_out)};
}

}  // namespace tandem
