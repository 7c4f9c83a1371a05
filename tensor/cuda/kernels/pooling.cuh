// Windows over [n, h, w, c]. Each thread has a vector of channels. Backward gathers: the thread
// that writes a pixel of dx reads the windows that cover it.
#pragma once

#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {

// A PoolShape's numbers as 32-bit integers, which are fast on a GPU.
struct Pooling {
  explicit Pooling(const PoolShape& shape)
      : height(static_cast<int>(shape.height)),
        width(static_cast<int>(shape.width)),
        channels(static_cast<int>(shape.channels)),
        out_height(static_cast<int>(shape.out_height)),
        out_width(static_cast<int>(shape.out_width)),
        window(static_cast<int>(shape.window)),
        stride(static_cast<int>(shape.stride)),
        padding(static_cast<int>(shape.padding)),
        count_padding(shape.count_padding) {}

  int height, width, channels, out_height, out_width, window, stride, padding;
  bool count_padding;

  __device__ std::int64_t in(int image, int row, int column) const {
    return ((static_cast<std::int64_t>(image) * height + row) * width + column) * channels;
  }
  __device__ std::int64_t out(int image, int row, int column) const {
    return ((static_cast<std::int64_t>(image) * out_height + row) * out_width + column) * channels;
  }
  // Pixels by which a window at `position` divides along one side.
  __device__ int pixels(int position, int size) const {
    const int start = position * stride - padding;
    return count_padding ? min(start + window, size + padding) - start
                         : min(start + window, size) - max(start, 0);
  }
  // The windows [first, end) along one side that cover `pixel`.
  __device__ int first_seeing(int pixel) const {
    return pixel + padding < window ? 0 : (pixel + padding - window) / stride + 1;
  }
  __device__ int end_seeing(int pixel, int positions) const {
    return min((pixel + padding) / stride + 1, positions);
  }
};

// Numbers the threads of a launch: the vectors of channels first, then the rows of a band, its
// columns, the bands. So a block has a patch of an image, and neighbours share what they read.
class Places {
 public:
  Places(std::int64_t rows, std::int64_t columns, std::int64_t vectors)
      : rows_(static_cast<int>(rows)),
        vectors_(vectors),
        columns_(columns),
        bands_(parts<std::int64_t>(rows, kBand)),
        per_image_(parts<std::int64_t>(rows, kBand) * kBand * columns * vectors) {}

  std::int64_t per_image() const { return per_image_; }  // threads

  struct Place {
    int image, row, column, vector;
  };
  // The calling thread's place; false if it has none.
  __device__ bool find(unsigned threads, Place& place) const {
    unsigned vector = blockIdx.x * kThreads + threadIdx.x;
    if (vector >= threads) return false;
    const unsigned pixel = vectors_.divide(vector);
    unsigned column = pixel / kBand;
    unsigned band = columns_.divide(column);
    const unsigned image = bands_.divide(band);
    place = {static_cast<int>(image), static_cast<int>(band * kBand + pixel % kBand),
             static_cast<int>(column), static_cast<int>(vector)};
    return place.row < rows_;
  }

 private:
  static constexpr int kBand = 4;

  int rows_;
  Divisor vectors_, columns_, bands_;
  std::int64_t per_image_;
};

// Calls launch(first image, threads, blocks) for all images: once, or several times if there are
// too many.
template <class F>
void for_images(std::int64_t images, const Places& places, const char* name, F&& launch) {
  for_each_piece(images, places.per_image(), [&](std::int64_t first, std::int64_t count) {
    const auto threads = static_cast<unsigned>(count * places.per_image());
    launch(first, threads, parts<unsigned>(threads, kThreads));
    check_launch(name);
  });
}

// Calls f with the type and the number of channels per thread.
template <class F>
void with_vectors(Type type, std::int64_t channels, F&& f) {
  with_type(type, [&]<class T>() {
    if (channels % kWidest<T> == 0)
      f.template operator()<T, kWidest<T>>();
    else
      f.template operator()<T, 1>();
  });
}

template <int N, class T>
__device__ inline void put(T* to, float (&values)[N], bool accumulate) {
  if (accumulate) {
    float old[N];
    load_floats(to, old);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] += old[k];
  }
  store_floats(to, values);
}

}  // namespace tandem::cuda
