// A finite set of labelled images, read by index. Reading is const and may happen on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/augment.h"
#include "data/skipped_files.h"
#include "tensor/dtype.h"
#include "tensor/device_queue.h"
#include "tensor/shape.h"

namespace tandem {

class Dataset {
 public:
  static constexpr std::int32_t kLeftOut = -1;

  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual Shape image_shape() const = 0;  // [height, width, channels]
  virtual std::int64_t classes() const = 0;
  // u8: pixels, which the loader normalises. f32: values that the model takes as they are.
  virtual Dtype dtype() const { return Dtype::u8; }

  // Writes the bytes of sample `index`, row by row, channels interleaved; returns its label.
  // `random` is there for training, and null for testing. A set whose images come in many sizes
  // uses it to cut them to image_shape(); the others take nothing from it. For testing only, the
  // label may be kLeftOut: the sample does not count.
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> bytes,
                            Random* random) const = 0;

  // A hash that tells this set from others, in a moment: the same for the same data on every
  // machine, wherever they lie. Unless a set knows better, of some samples spread over it.
  virtual std::uint64_t fingerprint() const;
};

// Images of one shape that fit in memory: the IDX and CIFAR files, and synthetic sets.
class InMemoryDataset : public Dataset {
 public:
  // `pixels` holds labels.size() images of `shape`, one after the other.
  InMemoryDataset(const Shape& shape, std::int64_t classes, std::vector<std::uint8_t> pixels,
                  std::vector<std::uint8_t> labels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape image_shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels,
                    Random* random) const override;
  std::uint64_t fingerprint() const override;  // of all labels, too

  std::span<const std::uint8_t> pixels() const { return pixels_; }

 private:
  Shape shape_;
  std::int64_t classes_;
  std::vector<std::uint8_t> pixels_, labels_;
};

// Samples of f32 that fit in memory, such as what the fixed layers of a net make of images.
class FeatureDataset : public Dataset {
 public:
  // `values` holds labels.size() samples of `shape`, one after the other.
  FeatureDataset(const Shape& shape, std::int64_t classes, std::vector<float> values,
                 std::vector<std::int32_t> labels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape image_shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  Dtype dtype() const override { return Dtype::f32; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> bytes,
                    Random* random) const override;
  // Of all labels alone: processors of different makes may compute values that differ in rounding.
  std::uint64_t fingerprint() const override;

 private:
  Shape shape_;
  std::int64_t classes_;
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
};

// Per channel, of pixels scaled to [0, 1]: the loader hands out (pixel/255 - mean) / deviation.
struct Normalisation {
  std::vector<float> mean, deviation;
};
ByteScale byte_scale(const Normalisation& normalisation);  // the same for pixels as they are read
Normalisation measure_normalisation(const InMemoryDataset& dataset);
Normalisation imagenet_normalisation();  // what everybody uses for photographs

// What an application trains and tests on.
struct DataSplit {
  std::shared_ptr<const Dataset> train, test;
  Normalisation normalisation;  // of the training images, for both; none for values of f32
  std::string description;      // which data, and why, for a person
  Augment augment = {};         // of the training images; may be empty
  int loader_threads = 1;       // that suit the set, for all workers of this machine together
  std::shared_ptr<const SkippedFiles> skipped = {};  // null: none can be
  std::vector<std::string> left_out = {};  // files that are not used, a line for a person each
};

}  // namespace tandem
