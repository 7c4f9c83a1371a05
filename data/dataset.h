// A finite set of labelled images, read by index. Reading is const and may happen on any thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/augment.h"
#include "tensor/device_queue.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/state.h"

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
  // `random` is set in training and null in testing. A set with images of many sizes uses it to
  // crop them to image_shape(); other sets ignore it. In testing, the label may be kLeftOut: the
  // sample is not counted.
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> bytes,
                            Random* random) const = 0;

  // A quick hash that distinguishes this set from others. It is the same for the same data on every
  // machine and at every path. By default it covers some samples spread over the set.
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
  std::uint64_t fingerprint() const override;  // also covers all labels

  std::span<const std::uint8_t> pixels() const { return pixels_; }

 private:
  Shape shape_;
  std::int64_t classes_;
  std::vector<std::uint8_t> pixels_, labels_;
};

// Samples of f32 that fit in memory, such as the outputs of a net's fixed layers.
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
  // Covers only the labels: values may differ in rounding between processors.
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
ByteScale byte_scale(const Normalisation& normalisation);  // the same for pixels of 0 to 255
Normalisation measure_normalisation(const InMemoryDataset& dataset);
Normalisation imagenet_normalisation();  // the usual one for photographs

// Collects the broken files that a run has skipped. Thread-safe.
class SkippedFiles {
 public:
  // Adds a message that names the file and its defect. A repeated message is kept once.
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.insert(what);
  }
  std::set<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  // All of them as one text, and back: adds those in the text.
  std::string text() const {
    std::string text;
    for (const std::string& what : all()) text += what + '\0';
    return text;
  }
  void add_all(const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at += std::strlen(text.c_str() + at) + 1)
      add(text.c_str() + at);
  }
  // Saves what was skipped, or adds what was saved.
  void visit(State& state) {
    std::string saved = text();
    state("skipped files", saved);
    add_all(saved);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> all_;
};

// The data that an application trains and tests on.
struct DataSplit {
  std::shared_ptr<const Dataset> train, test;
  Normalisation normalisation;  // of the training images, used for both; none for f32
  std::string description;      // which data, and why, for a person
  Augment augment = {};         // of the training images; may be empty
  int loader_threads = 1;       // suitable number, for all workers of this machine together
  std::vector<std::string> classes = {};  // their names; empty: they have only numbers
  // Tests scale an image so that its short side has this many pixels, and take the middle of it.
  std::int64_t tested_side = 0;                // 0: the size of the images
  std::shared_ptr<SkippedFiles> skipped = {};  // null if no file can be skipped
  std::vector<std::string> left_out = {};      // files that are not used, one line each
};

}  // namespace tandem
