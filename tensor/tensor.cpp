#include "tensor/tensor.h"

#include "tensor/backend.h"

namespace tandem {

Tensor Tensor::empty(const Shape& shape, Dtype dtype, const Device& device) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.storage_ = Storage(device, tensor.bytes());
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, Dtype dtype, const Device& device) {
  Tensor tensor = empty(shape, dtype, device);
  device.backend().fill_zero(tensor);
  return tensor;
}

Tensor Tensor::reshape(const Shape& shape) const {
  require(shape.count() == count(), "{} cannot be reshaped to {}", shape_, shape);
  Tensor other = *this;
  other.shape_ = shape;
  return other;
}

Tensor Tensor::view(std::int64_t first, const Shape& shape) const {
  require(first >= 0 && first + shape.count() <= count(),
          "a view of {} at {} does not fit into the tensor {}", shape, first, shape_);
  Tensor other = *this;
  other.shape_ = shape;
  other.offset_bytes_ += static_cast<std::size_t>(first) * bytes_of(dtype_);
  return other;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape_, dtype_, device());
  backend().copy(*this, copy);
  return copy;
}

double Tensor::item() const {
  require(count() == 1, "item() needs one element, not the shape {}", shape_);
  return with_float_type(dtype_, [&]<class T>() {
    T value{};
    copy_bytes_to_host(DtypeOf<T>::value, std::as_writable_bytes(std::span(&value, 1)));
    return static_cast<double>(value);
  });
}

void Tensor::copy_bytes_from_host(Dtype dtype, std::span<const std::byte> bytes) {
  require(dtype == dtype_ && bytes.size() == this->bytes(),
          "{} bytes of {} do not fill a tensor of {} {}", bytes.size(), name_of(dtype),
          name_of(dtype_), shape_);
  backend().copy_from_host(bytes, *this);
}

void Tensor::copy_bytes_to_host(Dtype dtype, std::span<std::byte> bytes) const {
  require(dtype == dtype_, "a tensor of {} was read as {}", name_of(dtype_), name_of(dtype));
  backend().copy_to_host(*this, bytes);
}

}  // namespace tandem
