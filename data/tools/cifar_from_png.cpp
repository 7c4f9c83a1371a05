// cifar_from_png IMAGES.png LABELS.json FIRST OUT.bin
//
// Converts a PNG to CIFAR-10's binary form (data/cifar.h). Each row of the PNG is one image, its
// 1,024 pixels one after the other. The labels are in a JSON array, from number FIRST on.
// data/fetch uses it for a copy of the set that comes in this form.
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/decode_image.h"

using namespace tandem;

namespace {

constexpr std::size_t kPlane = 32 * 32;

std::vector<std::uint8_t> read_labels(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UserError("cannot open {}", path);
  std::vector<std::uint8_t> labels;
  try {
    const auto all = nlohmann::json::parse(file).get<nlohmann::json::array_t>();
    for (const nlohmann::json& label : all) {
      if (!label.is_number_unsigned() || label > 255)
        throw UserError("{}: {} is not a label from 0 to 255", path, label.dump());
      labels.push_back(label);
    }
  } catch (const nlohmann::json::exception& e) {
    throw UserError("{} is not a JSON array of labels: {}", path, e.what());
  }
  return labels;
}

void convert(const std::string& images, const std::string& labels_path, std::size_t first,
             const std::string& out) {
  const Image image = decode_image(images);
  const std::vector<std::uint8_t> labels = read_labels(labels_path);
  const auto rows = static_cast<std::size_t>(image.height);
  if (image.width != kPlane)
    throw UserError("{} has rows of {} pixels, not {}", images, image.width, kPlane);
  if (first > labels.size() || labels.size() - first < rows)
    throw UserError("{} has no labels {} to {}", labels_path, first, first + rows - 1);
  std::string bytes;
  bytes.reserve(rows * (1 + 3 * kPlane));
  for (std::size_t i = 0; i < rows; ++i) {
    bytes += static_cast<char>(labels[first + i]);
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < kPlane; ++p)
        bytes += static_cast<char>(image.pixels[3 * (i * kPlane + p) + c]);
  }
  std::ofstream file(out, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())) || !file.flush())
    throw UserError("cannot write {}", out);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::size_t first = 0;
    const std::string number = argc == 5 ? argv[3] : "";
    if (std::from_chars(number.data(), number.data() + number.size(), first).ptr !=
            number.data() + number.size() ||
        number.empty())
      throw UserError("usage: cifar_from_png IMAGES.png LABELS.json FIRST OUT.bin");
    convert(argv[1], argv[2], first, argv[4]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "cifar_from_png: {}\n", e.what());
    return 2;
  }
}
