#include "data/cifar.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "data/files.h"
#include "data/synthetic.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlane = 32 * 32, kImage = 3 * kPlane;

struct Half {
  std::vector<std::uint8_t> pixels, labels;
};

// Appends the records of one file.
void read_file(const fs::path& path, int classes, Half& half) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw UserError("{} has no {}; `make data` fetches the files", path.parent_path().string(),
                    path.filename().string());
  const std::uint64_t bytes = regular_file_bytes(path);
  const std::size_t label_bytes = classes == 100 ? 2 : 1, record = label_bytes + kImage;
  if (bytes == 0) throw UserError("{} holds no images", path.string());
  if (bytes % record != 0)
    throw UserError("{} is truncated or not of CIFAR-{}: its {} bytes are not records of {} bytes",
                    path.string(), classes, bytes, record);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError("cannot open {}: {}", path.string(), std::strerror(errno));

  std::vector<std::uint8_t> buffer(record);
  const std::uint64_t records = bytes / record;
  half.pixels.reserve(half.pixels.size() + records * kImage);
  for (std::uint64_t i = 0; i < records; ++i) {
    if (!file.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(record)))
      throw UserError("cannot read {}: it ends after {} of {} images", path.string(), i, records);
    const std::uint8_t label = buffer[label_bytes - 1];
    if (label >= classes)
      throw UserError("{}: the label of image {} is {}, not 0 to {}", path.string(), i, label,
                      classes - 1);
    half.labels.push_back(label);
    const std::uint8_t* planes = buffer.data() + label_bytes;
    const std::size_t at = half.pixels.size();
    half.pixels.resize(at + kImage);
    for (std::size_t p = 0; p < kPlane; ++p)
      for (std::size_t c = 0; c < 3; ++c) half.pixels[at + 3 * p + c] = planes[c * kPlane + p];
  }
}

// The data sets come with a file of their classes' names, one per line. Empty if it is not there.
std::vector<std::string> class_names(const fs::path& folder, int classes) {
  std::ifstream file(folder / (classes == 100 ? "fine_label_names.txt" : "batches.meta.txt"));
  std::vector<std::string> names;
  for (std::string name; std::getline(file, name) && std::ssize(names) <= classes;)
    if (!name.empty()) names.push_back(name);
  return std::ssize(names) == classes ? names : std::vector<std::string>();
}

std::shared_ptr<const InMemoryDataset> load_half(const fs::path& folder, int classes,
                                                 const std::vector<std::string>& files) {
  Half half;
  for (const std::string& file : files) read_file(folder / file, classes, half);
  return std::make_shared<InMemoryDataset>(Shape{32, 32, 3}, classes, std::move(half.pixels),
                                           std::move(half.labels));
}

DataSplit make_split(std::shared_ptr<const InMemoryDataset> train,
                     std::shared_ptr<const InMemoryDataset> test, std::string description) {
  const Normalisation normalisation = measure_normalisation(*train);
  return {.train = std::move(train),
          .test = std::move(test),
          .normalisation = normalisation,
          .description = std::move(description),
          .augment = pad_crop_flip()};
}

DataSplit synthetic(int classes, const std::string& reason) {
  return make_split(synthetic_objects(20'000, classes, 1), synthetic_objects(4'000, classes, 2),
                    fmt::format("synthetic objects in {} classes{}", classes, reason));
}

std::string name_of(int classes) { return fmt::format("datasets/cifar-{}", classes); }

}  // namespace

DataSplit load_cifar(int classes, const fs::path& folder) {
  require(classes == 10 || classes == 100, "there is no CIFAR-{}", classes);
  require_data_folder(folder, name_of(classes));
  using Files = std::vector<std::string>;
  const Files train = classes == 100
                          ? Files{"train.bin"}
                          : Files{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                  "data_batch_4.bin", "data_batch_5.bin"};
  const Files test = {classes == 100 ? "test.bin" : "test_batch.bin"};
  auto train_half =
      load_half(folder, classes, train);  // loaded first, so that its errors are reported first
  DataSplit split =
      make_split(std::move(train_half), load_half(folder, classes, test), folder.string());
  split.classes = class_names(folder, classes);
  return split;
}

DataSplit open_cifar(int classes, const std::string& data) {
  if (data == "synthetic") return synthetic(classes, "");
  if (!data.empty()) return load_cifar(classes, data);
  if (is_folder(name_of(classes))) return load_cifar(classes, name_of(classes));
  return synthetic(classes,
                   fmt::format(" ({} does not exist; `make data` fetches it)", name_of(classes)));
}

}  // namespace tandem
