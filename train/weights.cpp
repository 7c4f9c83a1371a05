#include "train/weights.h"

#include <fmt/format.h>

#include <map>
#include <span>

#include "base/hash.h"
#include "dist/compress/magnitude.h"
#include "train/json_input.h"
#include "train/safetensors.h"

namespace tandem {

namespace {

// The parameter's shape in a file.
Shape file_shape(const Parameter& p) {
  return p.shape.rank() == 4 ? Shape{p.shape[0], p.shape[3], p.shape[1], p.shape[2]} : p.shape;
}

// `values` holds matrices [rows, columns], one after the other. Each is transposed.
std::vector<float> transpose_each(const std::vector<float>& values, std::int64_t rows,
                                  std::int64_t columns) {
  std::vector<float> result(values.size());
  const auto size = static_cast<std::size_t>(rows * columns);
  for (std::size_t first = 0; first < values.size(); first += size)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        result[first + static_cast<std::size_t>(column * rows + row)] =
            values[first + static_cast<std::size_t>(row * columns + column)];
  return result;
}

std::vector<float> channels_first(const Parameter& p, const std::vector<float>& values) {
  if (p.image.rank() == 0) return values;
  return transpose_each(values, p.image[0] * p.image[1], p.image[2]);
}

std::vector<float> channels_last(const Parameter& p, const std::vector<float>& values) {
  if (p.image.rank() == 0) return values;
  return transpose_each(values, p.image[2], p.image[0] * p.image[1]);
}

using Arrays = std::map<std::string, NamedArray>;

void check(const std::vector<Parameter*>& parameters, const std::string& path,
           const Arrays& arrays) {
  for (const Parameter* p : parameters) {
    const auto found = arrays.find(p->name);
    if (found == arrays.end())
      throw UserError("{} has no tensor {}, which this model needs", path, p->name);
    if (found->second.shape != file_shape(*p))
      throw UserError("{}: tensor {} is {}, but this model needs {}", path, p->name,
                      found->second.shape, file_shape(*p));
    if (!all_finite(found->second.values))
      throw UserError("{}: tensor {} holds values that are not finite", path, p->name);
  }
}

void fill(ParameterSet& set, const std::vector<Parameter*>& parameters, const Arrays& arrays) {
  for (Parameter* p : parameters)
    p->value.copy_from_host(std::span<const float>(channels_last(*p, arrays.at(p->name).values)));
  set.values_changed();
}

}  // namespace

void save_weights(const std::filesystem::path& path, const ParameterSet& parameters) {
  std::vector<NamedArray> arrays;
  for (const Parameter* p : parameters.all())
    arrays.push_back({p->name, file_shape(*p), channels_first(*p, p->value.to_host<float>())});
  write_safetensors(path, arrays);
}

void load_weights(const std::filesystem::path& path, ParameterSet& parameters) {
  auto arrays = read_safetensors(path);
  // Checks everything before changing anything.
  check(parameters.all(), path.string(), arrays);
  if (arrays.size() != parameters.all().size()) {
    for (const Parameter* p : parameters.all()) arrays.erase(p->name);
    throw UserError("{} has the tensor {}, which this model does not", path.string(),
                    shown(arrays.begin()->first));
  }
  fill(parameters, parameters.all(), arrays);
}

void load_fixed_weights(const std::filesystem::path& path, ParameterSet& parameters) {
  std::vector<Parameter*> fixed;
  for (Parameter* p : parameters.all())
    if (p->role == Role::fixed) fixed.push_back(p);
  const auto arrays = read_safetensors(path);
  check(fixed, path.string(), arrays);
  fill(parameters, fixed, arrays);
}

std::string first_not_finite(const ParameterSet& parameters) {
  for (const Parameter* p : parameters.all()) {
    if (!all_finite(p->value.to_host<float>())) return p->name;
  }
  return "";
}

std::string weights_hash(const ParameterSet& parameters) {
  std::uint64_t hash = kHashOfNothing;
  for (const Parameter* p : parameters.all()) {
    const std::vector<float> values = p->value.to_host<float>();
    hash = hash_of(std::as_bytes(std::span(values)), hash);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tandem
