// A contiguous n-dimensional array: a shape, a dtype and an offset into shared storage.
// Copying a Tensor shares its elements; clone() copies them. Images are NHWC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/storage.h"

namespace tandem {

class Tensor {
 public:
  Tensor() = default;  // undefined: no storage

  static Tensor empty(const Shape& shape, Dtype dtype, const Device& device);
  static Tensor zeros(const Shape& shape, Dtype dtype, const Device& device);
  // Copies from the host; the values' type is the dtype.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, const Device& device) {
    Tensor tensor = empty(shape, DtypeOf<T>::value, device);
    tensor.copy_from_host(values);
    return tensor;
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, const Device& device) {
    return from(std::span<const T>(values), shape, device);
  }

  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  std::int64_t size(int i) const { return shape_[i]; }
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * bytes_of(dtype_); }
  Dtype dtype() const { return dtype_; }
  Device device() const { return storage_.device(); }
  Backend& backend() const { return storage_.backend(); }

  // Device memory: the host may dereference these only if device().is_cpu().
  template <class T>
  T* data() const {
    require(dtype_ == DtypeOf<T>::value, "a tensor of {} was read as {}", name_of(dtype_),
            name_of(DtypeOf<T>::value));
    return reinterpret_cast<T*>(raw());
  }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(count())};
  }
  std::byte* raw() const { return storage_.data() + offset_bytes_; }

  // Views share the elements.
  Tensor reshape(const Shape& shape) const;
  // `shape.count()` elements from element `first` on, counted in the flat order.
  Tensor view(std::int64_t first, const Shape& shape) const;

  Tensor clone() const;
  bool shared() const { return storage_.shared(); }  // whether another tensor has this storage

  // Copies between host and device, and waits until the copy is done. The element counts must
  // match.
  template <class T>
  void copy_from_host(std::span<const T> values) {
    copy_bytes_from_host(DtypeOf<T>::value, std::as_bytes(values));
  }
  template <class T>
  std::vector<T> to_host() const {
    std::vector<T> values(static_cast<std::size_t>(count()));
    copy_bytes_to_host(DtypeOf<T>::value, std::as_writable_bytes(std::span(values)));
    return values;
  }
  double item() const;  // the value of a one-element floating tensor

 private:
  void copy_bytes_from_host(Dtype dtype, std::span<const std::byte> bytes);
  void copy_bytes_to_host(Dtype dtype, std::span<std::byte> bytes) const;

  Shape shape_;
  Storage storage_;
  std::size_t offset_bytes_ = 0;
  Dtype dtype_ = Dtype::f32;
};

}  // namespace tandem
