#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/random.h"

namespace tandem {
namespace {

constexpr std::int64_t kTrain = 1'281'167, kTest = 256;

class TintedNoise : public Dataset {
 public:
  TintedNoise(std::int64_t count, std::int64_t image_size, std::uint64_t seed)
      : count_(count), size_(image_size), random_(seed, Purpose::drawing) {}

  std::int64_t size() const override { return count_; }
  Shape image_shape() const override { return {size_, size_, 3}; }
  std::int64_t classes() const override { return 1000; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels,
                    Random* /*random*/) const override {
    require(index >= 0 && index < count_ && std::ssize(pixels) == size_ * size_ * 3,
            "sample {} of {} cannot be read", index, count_);
    Random random = random_.split(static_cast<std::uint64_t>(index));
    const auto label = static_cast<std::int32_t>(random.below(1000));
    // The three digits of the class determine how red, green and blue the image is. Noise below 128
    // and tints below 127 are added eight bytes at a time; no sum carries into the next byte.
    const std::array digits = {label / 100, label / 10 % 10, label % 10};
    std::array<std::uint8_t, 24> tints{};  // of eight pixels
    for (std::size_t i = 0; i < tints.size(); ++i)
      tints[i] = static_cast<std::uint8_t>(14 * digits[i % 3]);
    const auto tint = std::bit_cast<std::array<std::uint64_t, 3>>(tints);
    for (std::size_t begin = 0; begin < pixels.size(); begin += tints.size()) {
      std::array<std::uint64_t, 3> drawn{};
      for (std::size_t i = 0; i < drawn.size(); ++i)
        drawn[i] = (random.bits() >> 1 & 0x7f7f7f7f7f7f7f7fU) + tint[i];
      std::memcpy(pixels.data() + begin, drawn.data(),
                  std::min(tints.size(), pixels.size() - begin));
    }
    return label;
  }

 private:
  std::int64_t count_, size_;
  Random random_;
};

}  // namespace

DataSplit synthetic_imagenet(std::int64_t image_size) {
  if (image_size < 1) throw UserError("--image-size {} is not possible", image_size);
  const unsigned cores = std::thread::hardware_concurrency();
  return {.train = std::make_shared<TintedNoise>(kTrain, image_size, 1),
          .test = std::make_shared<TintedNoise>(kTest, image_size, 2),
          .normalisation = imagenet_normalisation(),
          .description = fmt::format("synthetic images of {0}x{0} pixels in 1000 classes, for "
                                     "measuring speed",
                                     image_size),
          .loader_threads = static_cast<int>(std::clamp(cores / 2, 1U, 8U))};
}

}  // namespace tandem
