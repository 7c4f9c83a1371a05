#include "data/mnist.h"

#include <system_error>

#include "base/error.h"
#include "data/data_folder.h"
#include "data/idx.h"
#include "data/synthetic_digits.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kClasses = 10;

// The path of the file, plain or with .gz appended; empty if neither exists.
fs::path find(const fs::path& folder, const std::string& name) {
  for (const std::string& candidate : {name, name + ".gz"})
    if (std::error_code error; fs::exists(folder / candidate, error)) return folder / candidate;
  return {};
}

fs::path find_or_complain(const fs::path& folder, const std::string& name) {
  fs::path path = find(folder, name);
  if (path.empty())
    throw UserError("{} has no {} (nor {}.gz); `make data` fetches the files", folder.string(),
                    name, name);
  return path;
}

std::shared_ptr<const InMemoryDataset> load_half(const fs::path& folder, const std::string& half) {
  const fs::path images_path = find_or_complain(folder, half + "-images-idx3-ubyte");
  const fs::path labels_path = find_or_complain(folder, half + "-labels-idx1-ubyte");
  IdxFile images = read_idx(images_path, 3);
  IdxFile labels = read_idx(labels_path, 1);
  if (images.sizes[0] != labels.sizes[0])
    throw UserError("{} holds {} images, but {} holds {} labels", images_path.string(),
                    images.sizes[0], labels_path.string(), labels.sizes[0]);
  if (images.sizes[0] == 0) throw UserError("{} holds no images", images_path.string());
  if (images.sizes[1] != 28 || images.sizes[2] != 28)
    throw UserError("{} holds images of {}x{} pixels, not 28x28", images_path.string(),
                    images.sizes[1], images.sizes[2]);
  for (std::size_t i = 0; i < labels.bytes.size(); ++i)
    if (labels.bytes[i] >= kClasses)
      throw UserError("{}: label {} is {}, not 0 to 9", labels_path.string(), i, labels.bytes[i]);
  return std::make_shared<InMemoryDataset>(Shape{28, 28, 1}, kClasses, std::move(images.bytes),
                                           std::move(labels.bytes));
}

DataSplit synthetic(const std::string& reason) {
  const auto train = synthetic_digits(20'000, 1);
  return {train, synthetic_digits(4'000, 2), measure_normalisation(*train),
          "synthetic digits" + reason};
}

}  // namespace

DataSplit load_mnist(const fs::path& folder) {
  require_data_folder(folder, "datasets/mnist");
  const auto train = load_half(folder, "train");
  return {train, load_half(folder, "t10k"), measure_normalisation(*train), folder.string()};
}

DataSplit open_mnist(const std::string& data) {
  if (data == "synthetic") return synthetic("");
  if (!data.empty()) return load_mnist(data);
  for (const fs::path folder : {"datasets/mnist", "datasets/fashion-mnist"})
    if (is_folder(folder)) return load_mnist(folder);
  return synthetic(
      " (neither datasets/mnist nor datasets/fashion-mnist exists; `make data` "
      "fetches them)");
}

}  // namespace tandem
