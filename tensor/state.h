// What a run must remember to continue to the same bits: weights, momenta, sums in flight. Every
// part has one function, visit(State&), which names all that the part holds. The same function
// saves and loads, so the two cannot drift apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tandem {

class State {
 public:
  virtual ~State() = default;
  // Saves the value, or replaces it by the one that was saved under this name. A tensor keeps its
  // memory, so that recordings and views stay valid.
  virtual void operator()(const std::string& name, Tensor& values) = 0;
  virtual void operator()(const std::string& name, std::int64_t& number) = 0;
};

// A state in host memory. A name that is saved twice, or loaded without having been saved, is an
// error.
class MemoryState {
 public:
  template <class Part>
  void save(Part& part) {
    Saving state(*this);
    part.visit(state);
  }
  template <class Part>
  void load(Part& part) {
    Loading state(*this);
    part.visit(state);
  }

 private:
  struct Saving : State {
    explicit Saving(MemoryState& to) : memory(to) {}
    void operator()(const std::string& name, Tensor& values) override;
    void operator()(const std::string& name, std::int64_t& number) override;
    MemoryState& memory;
  };
  struct Loading : State {
    explicit Loading(MemoryState& from) : memory(from) {}
    void operator()(const std::string& name, Tensor& values) override;
    void operator()(const std::string& name, std::int64_t& number) override;
    MemoryState& memory;
  };

  std::map<std::string, std::vector<std::byte>> tensors_;
  std::map<std::string, std::int64_t> numbers_;
};

}  // namespace tandem
