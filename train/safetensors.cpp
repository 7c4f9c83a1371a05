#include "train/safetensors.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "train/files.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // as the format's own library has it

// One tensor's entry in the header; `data_bytes` is the size of the part behind the header.
struct Entry {
  Shape shape;
  std::uint64_t begin = 0, end = 0;

  Entry(const Json& json, std::uint64_t data_bytes) {
    const auto dtype = json.at("dtype").get<std::string>();
    if (dtype != "F32") throw UserError("its dtype is {}; only F32 can be read", dtype);
    const auto sizes = json.at("shape").get<std::vector<std::int64_t>>();
    if (sizes.size() > Shape::kMaxRank) throw UserError("it has {} sizes", sizes.size());
    std::uint64_t bytes = sizeof(float);
    for (std::int64_t size : sizes) {
      if (size < 0 || static_cast<std::uint64_t>(size) > data_bytes)
        throw UserError("the size {} cannot be", size);
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
        throw UserError("its shape is too large");
    }
    shape = Shape(sizes);
    const auto& offsets = json.at("data_offsets");
    begin = offsets.at(0).get<std::uint64_t>();
    end = offsets.at(1).get<std::uint64_t>();
    if (begin > end || end > data_bytes || end - begin != bytes)
      throw UserError("bytes {} to {} are not a {} within the file's {} bytes of data", begin, end,
                      shape, data_bytes);
  }
};

void read_exactly(std::ifstream& file, void* to, std::uint64_t bytes, const std::string& path) {
  if (!file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
    throw UserError("{} cannot be read to its end", path);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays) {
  Json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const NamedArray& array : arrays) {
    const std::uint64_t end = offset + array.values.size() * sizeof(float);
    const auto sizes = array.shape.sizes();
    header[array.name] = {{"dtype", "F32"},
                          {"shape", std::vector<std::int64_t>(sizes.begin(), sizes.end())},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the elements begin aligned
  const std::uint64_t length = text.size();

  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(&length, 1)),
                                                    std::as_bytes(std::span(text))};
  for (const NamedArray& array : arrays) pieces.push_back(std::as_bytes(std::span(array.values)));
  write_file(path, pieces);
}

std::map<std::string, NamedArray> read_safetensors(const std::filesystem::path& file_path) {
  const std::string path = file_path.string();
  if (std::filesystem::is_directory(file_path)) throw UserError("{} is a folder", path);
  std::ifstream file(file_path, std::ios::binary);
  if (!file) throw UserError("cannot open {}: {}", path, std::strerror(errno));
  const std::uint64_t file_bytes = std::filesystem::file_size(file_path);

  std::uint64_t length = 0;
  if (file_bytes < sizeof(length)) throw UserError("{} is too short for a safetensors file", path);
  read_exactly(file, &length, sizeof(length), path);
  if (length > file_bytes - sizeof(length) || length > kMostHeaderBytes)
    throw UserError("{} is not a whole safetensors file: its header would have {} bytes", path,
                    length);
  std::string text(length, '\0');
  read_exactly(file, text.data(), length, path);
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) throw UserError("{} has a header that is not a JSON object", path);

  const std::uint64_t data_begin = sizeof(length) + length;
  std::map<std::string, NamedArray> arrays;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      const Entry entry(json, file_bytes - data_begin);
      NamedArray array{name, entry.shape,
                       std::vector<float>((entry.end - entry.begin) / sizeof(float))};
      file.seekg(static_cast<std::streamoff>(data_begin + entry.begin));
      read_exactly(file, array.values.data(), entry.end - entry.begin, path);
      arrays.emplace(name, std::move(array));
    } catch (const Json::exception&) {
      throw UserError("{}: tensor {} lacks a dtype, shape or data_offsets", path, name);
    } catch (const UserError& e) {
      throw UserError("{}: tensor {}: {}", path, name, e.what());
    }
  }
  return arrays;
}

}  // namespace tandem
