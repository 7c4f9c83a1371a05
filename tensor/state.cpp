#include "tensor/state.h"

#include <utility>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

template <class T>
void keep(std::map<std::string, T>& all, const std::string& name, T value) {
  require(all.emplace(name, std::move(value)).second, "two parts of a state are named {}", name);
}

template <class T>
const T& kept(const std::map<std::string, T>& all, const std::string& name) {
  const auto found = all.find(name);
  require(found != all.end(), "the state has no {}", name);
  return found->second;
}

}  // namespace

void MemoryState::Saving::operator()(const std::string& name, Tensor& values) {
  std::vector<std::byte> bytes(values.bytes());
  values.backend().copy_to_host(values, bytes);
  keep(memory.tensors_, name, std::move(bytes));
}

void MemoryState::Saving::operator()(const std::string& name, std::int64_t& number) {
  keep(memory.numbers_, name, number);
}

void MemoryState::Loading::operator()(const std::string& name, Tensor& values) {
  const std::vector<std::byte>& bytes = kept(memory.tensors_, name);
  require(bytes.size() == values.bytes(), "{} was saved with {} bytes, not {}", name, bytes.size(),
          values.bytes());
  values.backend().copy_from_host(bytes, values);
}

void MemoryState::Loading::operator()(const std::string& name, std::int64_t& number) {
  number = kept(memory.numbers_, name);
}

}  // namespace tandem
