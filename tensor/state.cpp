#include "tensor/state.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

std::string type_of(Dtype dtype) {
  std::string name = name_of(dtype);
  for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
  return name;
}

template <class T>
Snapshot::Item item_of(const char* type, const Shape& shape, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {type, shape, {bytes.begin(), bytes.end()}, {}};
}

template <class T>
Snapshot::Item item_of(const char* type, const T& value) {
  return item_of(type, {}, std::span(&value, 1));
}

void require_size(const std::string& name, std::size_t saved, std::size_t needed) {
  if (saved != needed)
    throw UserError("the saved state has {} bytes for \"{}\", not {}", saved, name, needed);
}

template <class T>
void take(const std::string& name, const Snapshot::Item& item, T& value) {
  require_size(name, item.bytes.size(), sizeof(T));
  std::memcpy(&value, item.bytes.data(), sizeof(T));
}

}  // namespace

void Snapshot::Saving::keep(const std::string& name, Item item) {
  require(snapshot.items_.emplace(name, std::move(item)).second,
          "two parts of a state are named {}", name);
}

void Snapshot::Saving::operator()(const std::string& name, Tensor& values) {
  Item item{type_of(values.dtype()), values.shape(), {}, {}};
  item.copy = Tensor::empty(values.shape(), values.dtype(), snapshot.host_);
  values.backend().read_later(values, item.copy);
  if (const EventPtr copied = values.backend().record_event()) snapshot.copied_ = copied;
  keep(name, std::move(item));
}

void Snapshot::Saving::operator()(const std::string& name, std::int64_t& number) {
  keep(name, item_of("I64", number));
}

void Snapshot::Saving::operator()(const std::string& name, double& number) {
  keep(name, item_of("F64", number));
}

void Snapshot::Saving::operator()(const std::string& name, std::vector<double>& numbers) {
  keep(name, item_of("F64", {std::ssize(numbers)}, std::span<const double>(numbers)));
}

void Snapshot::Saving::operator()(const std::string& name, std::string& text) {
  keep(name, item_of("U8", {std::ssize(text)}, std::span<const char>(text)));
}

const Snapshot::Item& Snapshot::Loading::kept(const std::string& name, const std::string& type) {
  const auto found = snapshot.items_.find(name);
  if (found == snapshot.items_.end()) throw UserError("the saved state has no \"{}\"", name);
  if (found->second.type != type)
    throw UserError("the saved state has \"{}\" as {}, not {}", name, found->second.type, type);
  snapshot.loaded_.insert(name);
  return found->second;
}

void Snapshot::Loading::operator()(const std::string& name, Tensor& values) {
  const Item& item = kept(name, type_of(values.dtype()));
  require_size(name, item.data().size(), values.bytes());
  values.backend().copy_from_host(item.data(), values);
}

void Snapshot::Loading::operator()(const std::string& name, std::int64_t& number) {
  take(name, kept(name, "I64"), number);
}

void Snapshot::Loading::operator()(const std::string& name, double& number) {
  take(name, kept(name, "F64"), number);
}

void Snapshot::Loading::operator()(const std::string& name, std::vector<double>& numbers) {
  const Item& item = kept(name, "F64");
  numbers.resize(item.bytes.size() / sizeof(double));
  require_size(name, item.bytes.size(), numbers.size() * sizeof(double));
  std::ranges::copy(item.bytes, std::as_writable_bytes(std::span(numbers)).begin());
}

void Snapshot::Loading::operator()(const std::string& name, std::string& text) {
  const Item& item = kept(name, "U8");
  text.resize(item.bytes.size());
  std::ranges::copy(item.bytes, std::as_writable_bytes(std::span(text)).begin());
}

void Snapshot::require_all_loaded() const {
  for (const auto& [name, item] : items_)
    if (!loaded_.contains(name))
      throw UserError("the saved state has \"{}\", which this run does not use", name);
}

}  // namespace tandem
