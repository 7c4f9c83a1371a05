#include <numeric>

#include "tensor/cuda/kernels/columns.cuh"
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

constexpr int kMostParts = 8;  // of one launch

// Some of the parts, in vectors of N columns.
template <class T>
struct Table {
  T* data[kMostParts];
  unsigned ends[kMostParts];  // in a row of these parts
  bool accumulate[kMostParts];
  int count;
};

// A thread moves one vector, from its part to the whole or back.
template <class T, int N, bool kBack>
__global__ void __launch_bounds__(kThreads)
    concat_kernel(Table<T> table, Divisor vectors, unsigned threads, std::int64_t first_row,
                  std::int64_t pitch, T* whole) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  if (thread >= threads) return;
  unsigned vector = thread;
  const std::int64_t row = first_row + vectors.divide(vector);
  T* outside = whole + row * pitch + vector * N;
  unsigned begin = 0;
#pragma unroll
  for (int i = 0; i < kMostParts; ++i) {
    if (i >= table.count) return;
    if (vector < table.ends[i]) {
      if (table.data[i] == nullptr) return;
      T* inside = table.data[i] + (row * (table.ends[i] - begin) + vector - begin) * N;
      if (!kBack) {
        store(outside, load<N>(inside));
      } else if (!table.accumulate[i]) {
        store(inside, load<N>(outside));
      } else {
        float values[N], more[N];
        load_floats(inside, values);
        load_floats(outside, more);
#pragma unroll
        for (int k = 0; k < N; ++k) values[k] += more[k];
        store_floats(inside, values);
      }
      return;
    }
    begin = table.ends[i];
  }
}

template <class T, int N, bool kBack>
void launch(const Queue& on, std::span<const Columns> parts, T* whole, std::int64_t rows,
            std::int64_t columns) {
  while (!parts.empty()) {
    Table<T> table{};
    std::int64_t vectors = 0;
    for (; table.count < kMostParts && static_cast<std::size_t>(table.count) < parts.size();
         ++table.count) {
      const Columns& part = parts[static_cast<std::size_t>(table.count)];
      vectors += part.columns / N;
      table.data[table.count] = static_cast<T*>(part.data);
      table.ends[table.count] = static_cast<unsigned>(vectors);
      table.accumulate[table.count] = part.accumulate;
    }
    for_each_piece(rows, vectors, [&](std::int64_t first, std::int64_t count) {
      const auto threads = static_cast<unsigned>(count * vectors);
      concat_kernel<T, N, kBack>
          <<<cuda::parts<unsigned>(threads, kThreads), kThreads, 0, on.stream>>>(
              table, Divisor(vectors), threads, first, columns, whole);
      check_launch("concat");
    });
    parts = parts.subspan(static_cast<std::size_t>(table.count));
    whole += vectors * N;
  }
}

// Calls launch with the widest access for which all columns are aligned.
template <bool kBack>
void move(const Queue& on, Type type, std::span<const Columns> parts, void* whole,
          std::int64_t rows, std::int64_t columns) {
  std::int64_t all = columns;
  for (const Columns& part : parts) all = std::gcd(all, part.columns);
  with_type(type, [&]<class T>() {
    with_width<T>(all, [&]<int N>() {
      launch<T, N, kBack>(on, parts, static_cast<T*>(whole), rows, columns);
    });
  });
}

}  // namespace

void concat(const Queue& on, Type type, std::span<const Columns> parts, void* y, std::int64_t rows,
            std::int64_t columns) {
  move<false>(on, type, parts, y, rows, columns);
}

void concat_gradient(const Queue& on, Type type, const void* dy, std::span<const Columns> parts,
                     std::int64_t rows, std::int64_t columns) {
  move<true>(on, type, parts, const_cast<void*>(dy), rows, columns);  // only reads it
}

}  // namespace tandem::cuda
