#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

// The windows of a row of pixels, in vectors of 16 bytes. A window's part of one row of x is
// contiguous in both.
struct WindowRow {
  Divisor per_window, per_run;    // vectors of a window, and of its part in a row of x
  unsigned vectors;               // of all windows
  unsigned per_pixel, per_x_row;  // vectors of x
  unsigned out_height, x_height;
};

// A block writes the windows of one row. Its reads of x overlap and hit the cache.
__global__ void __launch_bounds__(kThreads)
    unroll_kernel(WindowRow row, const uint4* x, uint4* windows) {
  const unsigned image = blockIdx.x / row.out_height, top = blockIdx.x % row.out_height;
  const uint4* from = x + (static_cast<std::int64_t>(image) * row.x_height + top) * row.per_x_row;
  uint4* to = windows + static_cast<std::int64_t>(blockIdx.x) * row.vectors;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < row.vectors; i += kThreads) {
    unsigned rest = i;
    const unsigned pixel = row.per_window.divide(rest);
    const unsigned line = row.per_run.divide(rest);
    to[i] = __ldg(from + line * row.per_x_row + pixel * row.per_pixel + rest);
  }
}

}  // namespace

void unroll(const Queue& on, Type type, const Windows& w, const void* x, void* windows) {
  const std::int64_t out_height = w.height - w.window_height + 1;
  const std::int64_t out_width = w.width - w.window_width + 1;
  const std::int64_t per_pixel = w.channels / (type == Type::bf16 ? kWidest<bf16> : kWidest<float>);
  const std::int64_t per_run = w.window_width * per_pixel, per_window = w.window_height * per_run;
  if (w.images * out_height * out_width * per_window == 0) return;
  if (out_width * per_window >= std::int64_t{1} << 31)
    throw std::runtime_error("the windows of a row of pixels are too large to unroll");
  const WindowRow row{.per_window = Divisor(per_window),
                      .per_run = Divisor(per_run),
                      .vectors = static_cast<unsigned>(out_width * per_window),
                      .per_pixel = static_cast<unsigned>(per_pixel),
                      .per_x_row = static_cast<unsigned>(w.width * per_pixel),
                      .out_height = static_cast<unsigned>(out_height),
                      .x_height = static_cast<unsigned>(w.height)};
  unroll_kernel<<<static_cast<unsigned>(w.images * out_height), kThreads, 0, on.stream>>>(
      row, static_cast<const uint4*>(x), static_cast<uint4*>(windows));
  check_launch("unroll");
}

}  // namespace tandem::cuda
