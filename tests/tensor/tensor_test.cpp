#include "tensor/tensor.h"

#include <doctest/doctest.h>

#include "tensor/backend.h"
#include "tensor/cuda/cuda_backend.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("shape: sizes, count and negative indices") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape.count() == 24);
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 4);
  CHECK(fmt::format("{}", shape) == "[2, 3, 4]");
  CHECK(shape == Shape{2, 3, 4});
  CHECK(shape != Shape{2, 3});
}

TEST_CASE("shape: a scalar has one element, an empty size none") {
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{3, 0, 2}.count() == 0);
}

TEST_CASE("shape: invalid sizes are refused") {
  CHECK_THROWS_AS((Shape{2, -1}), std::logic_error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), std::logic_error);
  const Shape shape{2, 3};
  CHECK_THROWS_AS(shape[2], std::logic_error);
  CHECK_THROWS_AS(shape[-3], std::logic_error);
}

TEST_CASE("tensor: views share elements, clones do not") {
  const Device device = cpu_device();
  const Tensor x = Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3}, device);
  const Tensor view = x.view(2, {3});
  const Tensor copy = x.clone();
  CHECK(x.shared());
  CHECK(!copy.shared());
  x.data<float>()[3] = 30;
  CHECK(view.to_host<float>() == std::vector<float>{2, 30, 4});
  CHECK(copy.to_host<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(x.reshape({6}).to_host<float>()[3] == 30);
}

TEST_CASE("tensor: a view keeps its storage alive") {
  Tensor view;
  {
    const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3}, cpu_device());
    view = x.view(1, {2});
  }  // the tensor and the last handle to its device are gone
  CHECK(view.to_host<float>() == std::vector<float>{2, 3});
}

TEST_CASE("tensor: misuse is refused") {
  const Device device = cpu_device();
  Tensor x = Tensor::zeros({2, 3}, Dtype::f32, device);
  CHECK_THROWS_AS(x.reshape({5}), std::logic_error);
  CHECK_THROWS_AS(x.view(4, {3}), std::logic_error);
  CHECK_THROWS_AS(x.view(-1, {3}), std::logic_error);
  CHECK_THROWS_AS(x.data<std::int32_t>(), std::logic_error);
  CHECK_THROWS_AS(x.item(), std::logic_error);
  const std::vector<float> few = {1, 2};
  CHECK_THROWS_AS(x.copy_from_host(std::span<const float>(few)), std::logic_error);
}

TEST_CASE("tensor: memory is reused, also for other sizes of the same class") {
  const Device device = cpu_device();
  const void* first = Tensor::empty({1000}, Dtype::f32, device).raw();
  const std::size_t held = device.backend().memory().held_bytes();
  for (int i = 0; i < 10; ++i) CHECK(Tensor::empty({999}, Dtype::f32, device).raw() == first);
  CHECK(device.backend().memory().held_bytes() == held);
  device.backend().memory().trim();
  CHECK(device.backend().memory().held_bytes() == 0);
}

TEST_CASE("tensor: size classes waste at most a quarter and keep the alignment") {
  for (std::size_t bytes = 1; bytes < 100'000; bytes += 7) {
    const std::size_t size = MemoryPool::size_class(bytes);
    CHECK(size >= bytes);
    CHECK(size % 64 == 0);
    if (bytes > 256) CHECK(size <= bytes + bytes / 4 + 64);
    CHECK(MemoryPool::size_class(size) == size);
  }
}

TEST_CASE("tensor: when memory runs out, the pool is freed first; then an error is thrown") {
  std::size_t left = 1024;
  const auto allocate = [&](std::size_t bytes) -> void* {
    if (bytes > left) return nullptr;
    left -= bytes;
    return &left;
  };
  const auto free = [&](void*) { left = 1024; };
  MemoryPool pool(allocate, free);
  pool.give_back(pool.take(1024));
  CHECK(pool.held_bytes() == 1024);
  pool.give_back(pool.take(512));  // the kilobyte in the pool had to go
  CHECK(pool.held_bytes() == 512);
  CHECK(message_of<SystemError>([&] { pool.take(2048); }) ==
        "out of memory: 2048 bytes could not be allocated");
}

TEST_CASE("tensor: asking for a GPU without a CUDA backend is an error") {
  CHECK_THROWS_AS(cuda_device({.index = 1000}), UserError);
}
