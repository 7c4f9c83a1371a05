#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace tandem {

std::uint64_t Dataset::fingerprint() const {
  constexpr std::int64_t kSamples = 16;
  std::uint64_t hash = kHashOfNothing;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(image_shape().count()) *
                                   bytes_of(dtype()));
  for (std::int64_t i = 0; i < std::min(kSamples, size()); ++i) {
    const std::int32_t label = read(i * size() / std::min(kSamples, size()), pixels, nullptr);
    hash = hash_of(std::as_bytes(std::span(pixels)), hash);
    hash = hash_of(std::as_bytes(std::span(&label, 1)), hash);
  }
  return hash;
}

InMemoryDataset::InMemoryDataset(const Shape& shape, std::int64_t classes,
                                 std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
    : shape_(shape), classes_(classes), pixels_(std::move(pixels)), labels_(std::move(labels)) {
  require(static_cast<std::int64_t>(pixels_.size()) == size() * shape_.count(),
          "{} bytes are not {} images of {}", pixels_.size(), size(), shape_);
}

std::int32_t InMemoryDataset::read(std::int64_t index, std::span<std::uint8_t> pixels,
                                   Random* /*random*/) const {
  const auto count = static_cast<std::size_t>(shape_.count());
  const auto i = static_cast<std::size_t>(index);
  require(i < labels_.size() && pixels.size() == count, "sample {} of {} cannot be read", index,
          size());
  std::copy_n(pixels_.data() + i * count, count, pixels.data());
  return labels_[i];
}

std::uint64_t InMemoryDataset::fingerprint() const {
  return hash_of(std::as_bytes(std::span(labels_)), Dataset::fingerprint());
}

FeatureDataset::FeatureDataset(const Shape& shape, std::int64_t classes, std::vector<float> values,
                               std::vector<std::int32_t> labels)
    : shape_(shape), classes_(classes), values_(std::move(values)), labels_(std::move(labels)) {
  require(static_cast<std::int64_t>(values_.size()) == size() * shape_.count(),
          "{} values are not {} samples of {}", values_.size(), size(), shape_);
}

std::int32_t FeatureDataset::read(std::int64_t index, std::span<std::uint8_t> bytes,
                                  Random* /*random*/) const {
  const auto count = static_cast<std::size_t>(shape_.count());
  const auto i = static_cast<std::size_t>(index);
  require(i < labels_.size() && bytes.size() == count * sizeof(float),
          "sample {} of {} cannot be read", index, size());
  std::memcpy(bytes.data(), values_.data() + i * count, bytes.size());
  return labels_[i];
}

std::uint64_t FeatureDataset::fingerprint() const {
  return hash_of(std::as_bytes(std::span(labels_)));
}

ByteScale byte_scale(const Normalisation& n) {
  ByteScale result;
  for (std::size_t c = 0; c < n.mean.size(); ++c) {
    result.scale.push_back(1 / (255 * n.deviation[c]));
    result.offset.push_back(-n.mean[c] / n.deviation[c]);
  }
  return result;
}

Normalisation measure_normalisation(const InMemoryDataset& dataset) {
  const auto channels = static_cast<std::size_t>(dataset.image_shape()[-1]);
  const auto pixels = dataset.pixels();
  Normalisation n;
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t sum = 0, squares = 0, count = 0;
    for (std::size_t i = c; i < pixels.size(); i += channels, ++count) {
      sum += pixels[i];
      squares += std::uint64_t{pixels[i]} * pixels[i];
    }
    const double mean = static_cast<double>(sum) / static_cast<double>(count);
    const double variance = static_cast<double>(squares) / static_cast<double>(count) - mean * mean;
    n.mean.push_back(static_cast<float>(mean / 255));
    // A constant channel has nothing to scale.
    n.deviation.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance) / 255) : 1.0F);
  }
  return n;
}

Normalisation imagenet_normalisation() {
  return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
}

}  // namespace tandem
