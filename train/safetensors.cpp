#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/regular_file.h"
#include "tensor/error.h"
#include "train/files.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // as the format's own library has it

// One tensor's entry in the header; `data_bytes` is the size of the part behind the header.
struct Entry {
  std::string name;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
  bool counter = false;  // of batches, by PyTorch

  Entry(const std::string& tensor, const Json& json, std::uint64_t data_bytes) : name(tensor) {
    const auto dtype = json.at("dtype").get<std::string>();
    counter = dtype == "I64" && name.ends_with("num_batches_tracked");
    if (dtype != "F32" && !counter) throw UserError("its dtype is {}; only F32 can be read", dtype);
    std::vector<std::int64_t> sizes;
    std::uint64_t bytes = counter ? sizeof(std::int64_t) : sizeof(float);
    for (const Json& size : json.at("shape")) {
      sizes.push_back(static_cast<std::int64_t>(whole_number(size, data_bytes)));
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(sizes.back()), &bytes))
        throw UserError("its shape is too large");
    }
    if (sizes.size() > Shape::kMaxRank) throw UserError("it has {} sizes", sizes.size());
    shape = Shape(sizes);
    begin = whole_number(json.at("data_offsets").at(0), data_bytes);
    end = whole_number(json.at("data_offsets").at(1), data_bytes);
    if (begin > end || end - begin != bytes)
      throw UserError("bytes {} to {} do not hold the shape {}", begin, end, shape);
  }

  static std::uint64_t whole_number(const Json& json, std::uint64_t most) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > most)
      throw UserError("{} is not a whole number within the file's {} bytes of data", json.dump(),
                      most);
    return json.get<std::uint64_t>();
  }
};

// The entries in the order of their data, which they must fill without gaps or overlaps.
std::vector<Entry> parse_header(const std::string& text, std::uint64_t data_bytes,
                                const std::string& path) {
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) throw UserError("{} has a header that is not a JSON object", path);
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.emplace_back(name, json, data_bytes);
    } catch (const Json::exception&) {
      throw UserError("{}: tensor {} lacks a dtype, shape or data_offsets", path, name);
    } catch (const UserError& e) {
      throw UserError("{}: tensor {}: {}", path, name, e.what());
    }
  }
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::uint64_t filled = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != filled)
      throw UserError("{}: tensor {} begins at byte {} of the data, not at {}", path, entry.name,
                      entry.begin, filled);
    filled = entry.end;
  }
  if (filled != data_bytes)
    throw UserError("{} has {} bytes of data, but its tensors have {}", path, data_bytes, filled);
  return entries;
}

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
  const std::uint64_t file_bytes = regular_file_bytes(file_path);
  std::ifstream file(file_path, std::ios::binary);
  if (!file) throw UserError("cannot open {}: {}", path, std::strerror(errno));

  std::uint64_t length = 0;
  if (file_bytes < sizeof(length)) throw UserError("{} is too short for a safetensors file", path);
  read_exactly(file, &length, sizeof(length), path);
  if (length > file_bytes - sizeof(length) || length > kMostHeaderBytes)
    throw UserError("{} is not a whole safetensors file: its header would have {} bytes", path,
                    length);
  std::string text(length, '\0');
  read_exactly(file, text.data(), length, path);

  std::map<std::string, NamedArray> arrays;
  for (Entry& entry : parse_header(text, file_bytes - sizeof(length) - length, path)) {
    if (entry.counter) {
      file.ignore(static_cast<std::streamsize>(entry.end - entry.begin));
      continue;
    }
    std::vector<float> values(static_cast<std::size_t>(entry.shape.count()));
    read_exactly(file, values.data(), entry.end - entry.begin, path);
    arrays.emplace(entry.name, NamedArray{entry.name, entry.shape, std::move(values)});
  }
  return arrays;
}

}  // namespace tandem
