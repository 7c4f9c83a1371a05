// The safetensors format: eight bytes with the header's length, a JSON header that gives each
// tensor's dtype, shape and place, then the elements, little-endian and row-major.
#pragma once

#include <filesystem>
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

// Reads a file of F32, F16, BF16 and F64 tensors; all become float. Throws UserError with the path
// if the file is missing, broken, or holds other dtypes; but what PyTorch's batch norms count
// (num_batches_tracked, I64) is passed over. An F64 value beyond float's range is refused. Sizes
// are checked against the file before memory is taken.
std::map<std::string, NamedArray> read_safetensors(const std::filesystem::path& path);

}  // namespace tandem
