#include "simulate/phantom_device.h"

#include <algorithm>
#include <utility>

#include "base/phantom_memory.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "tensor/cpu/cpu_backend.h"

namespace tandem {

void host_works(std::int64_t elements, double seconds_per_element) {
  VirtualTime::here()->work(from_seconds(static_cast<double>(elements) * seconds_per_element));
}

namespace {

class PhantomBackend : public CpuBackend {
 public:
  explicit PhantomBackend(const HostCost& cost)
      : CpuBackend(1, new_phantom, delete_phantom), cost_(cost) {}

  const char* name() const override { return "phantom"; }

  void copy_from_host(std::span<const std::byte>, const Tensor&) override {}
  void copy_to_host(const Tensor&, std::span<std::byte> to) override {
    std::ranges::fill(to, std::byte{});
  }
  void copy(const Tensor& from, const Tensor&) override { host_works(from.count(), cost_.copy); }
  void fill(const Tensor&, double) override {}
  void cast(const Tensor&, const Tensor&) override {}
  void weighted_sum(double, const Tensor& a, double, const Tensor&, const Tensor&) override {
    host_works(a.count(), cost_.add);
  }
  void sgd(const SgdStep&, const Tensor& gradient, const Tensor&, const Tensor&,
           const Tensor&) override {
    host_works(gradient.count(), cost_.update);
  }

 private:
  const HostCost& cost_;
};

class WithoutContent : public Compressor {
 public:
  WithoutContent(std::unique_ptr<Compressor> sizes, const HostCost& cost)
      : sizes_(std::move(sizes)), cost_(cost) {}

  const char* name() const override { return sizes_->name(); }
  std::size_t bytes(std::int64_t count) const override { return sizes_->bytes(count); }
  Packing packing() const override { return sizes_->packing(); }

  void compress(std::span<const float> values, std::span<std::byte>) const override {
    host_works(std::ssize(values), cost_.compress);
  }
  void decompress(std::span<const std::byte>, std::span<float> values) const override {
    host_works(std::ssize(values), cost_.decompress);
  }
  void add(std::span<const std::byte>, std::span<const float> values,
           std::span<std::byte>) const override {
    host_works(std::ssize(values), cost_.add);
  }
  void add_packed(std::span<const std::byte>, std::span<const std::byte>, std::int64_t count,
                  std::span<std::byte>) const override {
    host_works(count, cost_.add);
  }
  HugePages memory(std::size_t bytes) const override { return HugePages::phantom(bytes); }
  void copy(std::span<const std::byte> from, std::span<std::byte>) const override {
    const auto a_block = static_cast<double>(sizes_->bytes(kBlock));
    host_works(kBlock, cost_.copy * static_cast<double>(from.size()) / a_block);
  }
  bool finite(std::span<const float> values) const override {
    host_works(std::ssize(values), cost_.check);
    return true;
  }
  void add_values(std::span<const float>, std::span<float> own) const override {
    host_works(std::ssize(own), cost_.add);
  }
  void average(std::span<const float>, std::span<float> own) const override {
    host_works(std::ssize(own), cost_.add);
  }

 private:
  std::unique_ptr<Compressor> sizes_;
  const HostCost& cost_;
};

}  // namespace

Device phantom_device(const HostCost& cost) {
  return Device(std::make_shared<PhantomBackend>(cost));
}

std::unique_ptr<Compressor> without_content(std::unique_ptr<Compressor> compressor,
                                            const HostCost& cost) {
  return std::make_unique<WithoutContent>(std::move(compressor), cost);
}

}  // namespace tandem
