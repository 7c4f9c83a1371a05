#include "train/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "train/safetensors.h"

namespace tandem {

void save_weights(const std::filesystem::path& path, const ParameterSet& parameters) {
  std::vector<NamedArray> arrays;
  for (const Parameter* p : parameters.all())
    arrays.push_back({p->name, p->shape, p->value.to_host<float>()});
  write_safetensors(path, arrays);
}

void load_weights(const std::filesystem::path& path, ParameterSet& parameters) {
  auto arrays = read_safetensors(path);
  // All is checked before anything is changed.
  for (const Parameter* p : parameters.all()) {
    const auto found = arrays.find(p->name);
    if (found == arrays.end())
      throw UserError("{} has no tensor {}, which this model needs", path.string(), p->name);
    if (found->second.shape != p->shape)
      throw UserError("{}: tensor {} is {}, but this model needs {}", path.string(), p->name,
                      found->second.shape, p->shape);
  }
  if (arrays.size() != parameters.all().size()) {
    for (const Parameter* p : parameters.all()) arrays.erase(p->name);
    throw UserError("{} has the tensor {}, which this model does not", path.string(),
                    arrays.begin()->first);
  }
  for (Parameter* p : parameters.all())
    p->value.copy_from_host(std::span<const float>(arrays.at(p->name).values));
}

std::string first_not_finite(const ParameterSet& parameters) {
  for (const Parameter* p : parameters.all()) {
    const std::vector<float> values = p->value.to_host<float>();
    if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) return p->name;
  }
  return "";
}

std::string weights_hash(const ParameterSet& parameters) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Parameter* p : parameters.all()) {
    const std::vector<float> values = p->value.to_host<float>();
    for (const std::byte byte : std::as_bytes(std::span(values)))
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tandem
