#include "train/fixed_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/loader.h"
#include "tensor/memo_file.h"
#include "train/files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

template <class T>
std::uint64_t add_to_hash(std::uint64_t hash, const std::vector<T>& values) {
  return hash_of(std::as_bytes(std::span(values)), hash);
}

// The training or the test half of the data: the labels, and a hash of all that the features depend
// on.
struct Half {
  const Dataset& images;
  std::vector<std::int32_t> labels = {};
  std::vector<float> features = {};

  std::uint64_t read(std::uint64_t hash) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(images.image_shape().count()));
    for (std::int64_t i = 0; i < images.size(); ++i) {
      labels.push_back(images.read(i, pixels, nullptr));
      hash = add_to_hash(hash, pixels);
    }
    return add_to_hash(hash, labels);
  }
};

std::uint64_t hash_of_layers(const FixedLayers& layers) {
  std::uint64_t hash = kHashOfNothing;
  for (const Parameter* p : layers.parameters.all())
    if (p->role == Role::fixed) hash = add_to_hash(hash, p->value.to_host<float>());
  return hash;
}

std::vector<float> compute(const std::shared_ptr<const Dataset>& images,
                           const Normalisation& normalisation, const FixedLayers& layers) {
  constexpr std::int64_t kBatch = 500;
  Loader loader(images, normalisation, layers.parameters.device(), {.batch = kBatch});
  Tape tape;
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(images->size() * layers.size));
  for (std::int64_t b = 0; b < loader.batches_per_epoch(); ++b) {
    tape.begin(Tape::Mode::inference);
    const Var made = layers.forward(tape, Var{loader.next().images});
    require(made.value.size(-1) == layers.size, "{} fixed features, not {}", made.value.size(-1),
            layers.size);
    const std::vector<float> values = made.value.to_host<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// A cache file holds a hash of the values, then the values of the training half and of the test
// half. A damaged file, or one of another size, is rewritten.
bool find(const fs::path& file, std::vector<float>& train, std::vector<float>& test) {
  std::error_code error;
  const std::size_t bytes = (train.size() + test.size()) * sizeof(float);
  if (fs::file_size(file, error) != sizeof(std::uint64_t) + bytes || error) return false;
  std::string text;
  try {
    text = read_file(file);
  } catch (const SystemError&) {
    return false;
  }
  if (text.size() != sizeof(std::uint64_t) + bytes) return false;
  std::uint64_t hash = 0;
  std::memcpy(&hash, text.data(), sizeof hash);
  const char* values = text.data() + sizeof hash;
  if (hash_of(std::as_bytes(std::span(values, bytes))) != hash) return false;
  std::memcpy(train.data(), values, train.size() * sizeof(float));
  std::memcpy(test.data(), values + train.size() * sizeof(float), test.size() * sizeof(float));
  return true;
}

// Keeps only the newest files of the folder: files of nets that are no longer trained would pile
// up.
void remove_old_files(const fs::path& folder) {
  constexpr std::size_t kKept = 8;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("features-"))
      files.emplace_back(entry.last_write_time(), entry.path());
  std::ranges::sort(files, std::greater());
  for (std::size_t i = kKept; i < files.size(); ++i) fs::remove(files[i].second);
}

// The cache only saves time, so failing to write it is not an error.
void keep(const fs::path& file, const std::vector<float>& train, const std::vector<float>& test) {
  const std::uint64_t hash = add_to_hash(add_to_hash(kHashOfNothing, train), test);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&hash, 1)),
                                               std::as_bytes(std::span(train)),
                                               std::as_bytes(std::span(test))};
  try {
    fs::create_directories(file.parent_path());
    write_file(file, pieces);
    remove_old_files(file.parent_path());
  } catch (const SystemError&) {
  } catch (const fs::filesystem_error&) {
  }
}

}  // namespace

DataSplit with_fixed_features(const DataSplit& images, const FixedLayers& layers,
                              const std::function<void(std::int64_t)>& announce) {
  require(layers.parameters.device().is_cpu(), "fixed features are computed on the CPU");
  Half train{*images.train}, test{*images.test};
  std::uint64_t key = test.read(train.read(hash_of_layers(layers)));
  key = add_to_hash(add_to_hash(key, images.normalisation.mean), images.normalisation.deviation);
  const auto values = [&](const Half& half) {
    return half.labels.size() * std::size_t(layers.size);
  };
  train.features.resize(values(train));
  test.features.resize(values(test));

  const fs::path folder = cache_folder();
  const fs::path file = folder / fmt::format("features-{:016x}.bin", key);
  if (folder.empty() || !find(file, train.features, test.features)) {
    announce(images.train->size() + images.test->size());
    train.features = compute(images.train, images.normalisation, layers);
    test.features = compute(images.test, images.normalisation, layers);
    if (!folder.empty()) keep(file, train.features, test.features);
  }
  const auto dataset = [&](Half& half) {
    return std::make_shared<FeatureDataset>(Shape{1, 1, layers.size}, half.images.classes(),
                                            std::move(half.features), std::move(half.labels));
  };
  return {.train = dataset(train),
          .test = dataset(test),
          .description = images.description + ", outputs of the fixed layers"};
}

}  // namespace tandem
