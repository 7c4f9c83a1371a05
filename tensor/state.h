// What a run must remember to continue to the same bits: weights, momenta, sums in flight. Every
// part has one function, visit(State&), which names all that the part holds. The same function
// saves and loads, so the two cannot drift apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/event.h"
#include "tensor/tensor.h"

namespace tandem {

class State {
 public:
  virtual ~State() = default;
  // Each saves the value, or replaces it by the one that was saved under this name. A tensor keeps
  // its memory, so that recordings and views stay valid.
  virtual void operator()(const std::string& name, Tensor& values) = 0;
  virtual void operator()(const std::string& name, std::int64_t& number) = 0;
  virtual void operator()(const std::string& name, double& number) = 0;
  virtual void operator()(const std::string& name, std::vector<double>& numbers) = 0;
  virtual void operator()(const std::string& name, std::string& text) = 0;
};

// A state in host memory.
class Snapshot {
 public:
  // Copies of tensors take memory of this device, which must be a CPU; host_of() has memory to
  // which a GPU copies fast.
  explicit Snapshot(Device host = cpu_device()) : host_(std::move(host)) {}

  // A saved value. Its type has the name that safetensors files use: F32, BF16, I64, F64, U8 …
  struct Item {
    std::string type;
    Shape shape;
    std::vector<std::byte> bytes;
    Tensor copy;  // holds a tensor's values instead of `bytes`

    std::span<const std::byte> data() const {
      return copy.defined() ? std::span<const std::byte>(copy.raw(), copy.bytes()) : bytes;
    }
  };

  // Saving copies tensors. On a GPU the copies are only queued: call wait() before reading items.
  // Any thread may do that. A name that is saved twice breaks a contract.
  template <class Part>
  void save(Part& part) {
    Saving state(*this);
    part.visit(state);
  }
  void wait() const {
    if (copied_) copied_->wait();
  }

  // Throws UserError if the part has a value that was not saved, or not with this type and size.
  template <class Part>
  void load(Part& part) {
    Loading state(*this);
    part.visit(state);
  }
  // Throws UserError if a value was saved, but never loaded.
  void require_all_loaded() const;

  // By name. To be filled before load() if the state comes from a file.
  std::map<std::string, Item>& items() { return items_; }
  const std::map<std::string, Item>& items() const { return items_; }

 private:
  struct Saving : State {
    explicit Saving(Snapshot& to) : snapshot(to) {}
    void operator()(const std::string& name, Tensor& values) override;
    void operator()(const std::string& name, std::int64_t& number) override;
    void operator()(const std::string& name, double& number) override;
    void operator()(const std::string& name, std::vector<double>& numbers) override;
    void operator()(const std::string& name, std::string& text) override;
    void keep(const std::string& name, Item item);
    Snapshot& snapshot;
  };
  struct Loading : State {
    explicit Loading(Snapshot& from) : snapshot(from) {}
    void operator()(const std::string& name, Tensor& values) override;
    void operator()(const std::string& name, std::int64_t& number) override;
    void operator()(const std::string& name, double& number) override;
    void operator()(const std::string& name, std::vector<double>& numbers) override;
    void operator()(const std::string& name, std::string& text) override;
    const Item& kept(const std::string& name, const std::string& type);
    Snapshot& snapshot;
  };

  Device host_;
  std::map<std::string, Item> items_;
  std::set<std::string> loaded_;
  EventPtr copied_;  // after it, all copies are complete
};

}  // namespace tandem
