// The safetensors format: eight bytes with the header's length, a JSON header with each tensor's
// dtype, shape and position, then the elements, little-endian and row-major.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace tandem {

struct NamedArray {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// Written atomically, in the given order, as F32.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays);

// Reads a file of F32, F16, BF16 and F64 tensors; all become float. Throws UserError, which names
// the path, if the file is missing, broken, or holds other dtypes or an F64 value beyond float's
// range. The batch counters of PyTorch's batch norms (num_batches_tracked, I64) are ignored. Sizes
// are checked against the file before memory is allocated.
std::map<std::string, NamedArray> read_safetensors(const std::filesystem::path& path);

// Elements as bytes, of any dtype that the format has.
struct RawArray {
  std::string name, dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};
// The whole file, in pieces. The text must outlive them, and so must the arrays' bytes.
std::vector<std::span<const std::byte>> safetensors_pieces(std::span<const RawArray> arrays,
                                                           std::string& text);

// Reads a file of any dtypes and calls take() for each tensor, in the order of the file. The bytes
// are valid during the call. Throws UserError like read_safetensors().
void read_raw_safetensors(const std::filesystem::path& path,
                          const std::function<void(const RawArray& array)>& take);

}  // namespace tandem
