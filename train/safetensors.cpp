#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "base/error.h"
#include "data/files.h"
#include "train/files.h"
#include "train/json_input.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::json;

constexpr std::uint64_t kMostHeaderBytes = 10'000'000;  // enough for a hundred thousand tensors

template <class T>
T bits_at(const std::byte* at) {
  T bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

float from_f32(const std::byte* at) { return bits_at<float>(at); }

float from_bf16(const std::byte* at) {
  return std::bit_cast<float>(std::uint32_t{bits_at<std::uint16_t>(at)} << 16);
}

// 1 sign bit, 5 exponent bits and 10 mantissa bits become 1, 8 and 23.
float from_f16(const std::byte* at) {
  const std::uint32_t bits = bits_at<std::uint16_t>(at);
  const std::uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 0) {  // subnormal: a multiple of the smallest number
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return bits >> 15 ? -value : value;
  }
  const std::uint32_t wider = exponent == 31 ? 255 : exponent - 15 + 127;  // 31: infinity or NaN
  return std::bit_cast<float>(bits >> 15 << 31 | wider << 23 | mantissa << 13);
}

float from_f64(const std::byte* at) {
  const auto value = bits_at<double>(at);
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max())
    throw UserError("its value {} is beyond the range of F32", value);
  return static_cast<float>(value);
}

template <std::size_t kBytes, float (*from)(const std::byte*)>
void read_all(const std::byte* bytes, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from(bytes + i * kBytes);
}

// An element type of a file.
struct ElementType {
  const char* name;
  std::uint64_t bytes;
  // Converts to float; null: it cannot be read as float.
  void (*read)(const std::byte* bytes, std::span<float> values) = nullptr;
};

constexpr ElementType kElementTypes[] = {{"F32", 4, read_all<4, from_f32>},
                                         {"F16", 2, read_all<2, from_f16>},
                                         {"BF16", 2, read_all<2, from_bf16>},
                                         {"F64", 8, read_all<8, from_f64>},
                                         {"I64", 8},
                                         {"I32", 4},
                                         {"U8", 1}};

// Which tensors of a file may be there.
enum class Accepted { floats, all };

bool is_counter(const std::string& tensor, const std::string& dtype) {
  return dtype == "I64" && tensor.ends_with("num_batches_tracked");
}

ElementType element_type(const std::string& tensor, const Json& json, Accepted accepted) {
  const auto& dtype = json.at("dtype").get_ref<const std::string&>();
  for (const ElementType& type : kElementTypes)
    if (dtype == type.name && (accepted == Accepted::all || type.read || is_counter(tensor, dtype)))
      return type;
  throw UserError("its dtype is {}; F32, F16, BF16{} can be read", shown(dtype),
                  accepted == Accepted::all ? ", F64, I64, I32 and U8" : " and F64");
}

// One tensor's entry in the header. `data_bytes` is the number of bytes after the header.
struct Entry {
  std::string name;
  ElementType type;
  Shape shape;
  std::uint64_t begin = 0, end = 0;

  Entry(const std::string& tensor, const Json& json, std::uint64_t data_bytes, Accepted accepted)
      : name(tensor), type(element_type(tensor, json, accepted)) {
    std::vector<std::int64_t> sizes;
    std::uint64_t bytes = type.bytes;
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

  std::vector<float> values(std::span<const std::byte> bytes) const {
    std::vector<float> result(static_cast<std::size_t>(shape.count()));
    type.read(bytes.data(), result);
    return result;
  }

  static std::uint64_t whole_number(const Json& json, std::uint64_t most) {
    if (!is_whole(json, most))
      throw UserError("{} is not a whole number within the file's {} bytes of data",
                      shown_value(json), most);
    return json.get<std::uint64_t>();
  }
};

Json parse_object(const std::string& text, const std::string& path) {
  try {
    Json header = parse_json(text);
    if (header.is_object()) return header;
  } catch (const UserError& e) {
    throw UserError("{} has a header that cannot be read: {}", path, e.what());
  }
  throw UserError("{} has a header that is not a JSON object", path);
}

// The entries in the order of their data. Together they must fill the data without gaps or
// overlaps.
std::vector<Entry> parse_header(const std::string& text, std::uint64_t data_bytes,
                                const std::string& path, Accepted accepted) {
  const Json header = parse_object(text, path);
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.emplace_back(name, json, data_bytes, accepted);
    } catch (const Json::exception&) {
      throw UserError("{}: tensor {} lacks a dtype, shape or data_offsets", path, shown(name));
    } catch (const UserError& e) {
      throw UserError("{}: tensor {}: {}", path, shown(name), e.what());
    }
  }
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::uint64_t filled = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != filled)
      throw UserError("{}: tensor {} begins at byte {} of the data, not at {}", path,
                      shown(entry.name), entry.begin, filled);
    filled = entry.end;
  }
  if (filled != data_bytes)
    throw UserError("{} has {} bytes of data, but its tensors have {}", path, data_bytes, filled);
  return entries;
}

void read_exactly(std::ifstream& file, void* to, std::uint64_t bytes, const std::string& path) {
  if (!file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
    throw UserError("{} could not be read completely", path);
}

// Calls take(entry, bytes) for each tensor.
template <class Take>
void for_each_tensor(const std::filesystem::path& file_path, Accepted accepted, const Take& take) {
  const std::string path = file_path.string();
  const std::uint64_t file_bytes = regular_file_bytes(file_path);
  std::ifstream file(file_path, std::ios::binary);
  if (!file) throw UserError("cannot open {}: {}", path, std::strerror(errno));

  std::uint64_t length = 0;
  if (file_bytes < sizeof(length)) throw UserError("{} is too short for a safetensors file", path);
  read_exactly(file, &length, sizeof(length), path);
  if (length > file_bytes - sizeof(length))
    throw UserError("{} is not a whole safetensors file: its header would have {} bytes", path,
                    length);
  if (length > kMostHeaderBytes)
    throw UserError("{} has a header of {} bytes; {} are the most that can be read", path, length,
                    kMostHeaderBytes);
  std::string text(length, '\0');
  read_exactly(file, text.data(), length, path);

  std::vector<std::byte> bytes;
  const std::uint64_t data_bytes = file_bytes - sizeof(length) - length;
  for (const Entry& entry : parse_header(text, data_bytes, path, accepted)) {
    bytes.resize(entry.end - entry.begin);
    read_exactly(file, bytes.data(), bytes.size(), path);
    try {
      take(entry, bytes);
    } catch (const UserError& e) {
      throw UserError("{}: tensor {}: {}", path, shown(entry.name), e.what());
    }
  }
}

}  // namespace

std::vector<std::span<const std::byte>> safetensors_pieces(std::span<const RawArray> arrays,
                                                           std::string& text) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const RawArray& array : arrays) {
    const std::uint64_t end = offset + array.bytes.size();
    const auto sizes = array.shape.sizes();
    header[array.name] = {{"dtype", array.dtype},
                          {"shape", std::vector<std::int64_t>(sizes.begin(), sizes.end())},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  const std::string json = header.dump();
  const std::uint64_t length = (json.size() + 7) / 8 * 8;  // align the elements
  text.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  text += json;
  text.resize(sizeof(length) + length, ' ');

  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(text))};
  for (const RawArray& array : arrays) pieces.push_back(array.bytes);
  return pieces;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays) {
  std::vector<RawArray> raw;
  for (const NamedArray& array : arrays)
    raw.push_back({array.name, "F32", array.shape, std::as_bytes(std::span(array.values))});
  std::string text;
  write_file(path, safetensors_pieces(raw, text));
}

std::map<std::string, NamedArray> read_safetensors(const std::filesystem::path& path) {
  std::map<std::string, NamedArray> arrays;
  for_each_tensor(
      path, Accepted::floats, [&](const Entry& entry, std::span<const std::byte> bytes) {
        if (entry.type.read)
          arrays.emplace(entry.name, NamedArray{entry.name, entry.shape, entry.values(bytes)});
      });
  return arrays;
}

void read_raw_safetensors(const std::filesystem::path& path,
                          const std::function<void(const RawArray& array)>& take) {
  for_each_tensor(path, Accepted::all, [&](const Entry& entry, std::span<const std::byte> bytes) {
    take({entry.name, entry.type.name, entry.shape, bytes});
  });
}

}  // namespace tandem
