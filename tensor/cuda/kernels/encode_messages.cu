// What codecs need besides encodings: messages without gaps, and checks of values.
#include "tensor/cuda/kernels/encode.cuh"

namespace tandem::cuda {
namespace {

// Copies bytes with the threads of a warp, writing whole words where it can, because the target is
// far away. The source begins at a word, the target perhaps within one. Then each word of the
// target is the end of one word of the source and the start of the next. Reads the source's last
// word to its end.
__device__ void copy_by_warp(const std::byte* source, unsigned size, std::byte* target) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned head =
      min(size, static_cast<unsigned>(-reinterpret_cast<std::uintptr_t>(target) & 3U));
  const unsigned words = (size - head) / 4, tail = head + 4 * words;
  if (lane < head) target[lane] = source[lane];
  const auto* const from = reinterpret_cast<const std::uint32_t*>(source);
  auto* const to = reinterpret_cast<std::uint32_t*>(target + head);
  for (unsigned k = lane; k < words; k += 32)
    to[k] = head == 0 ? from[k] : __funnelshift_r(from[k], from[k + 1], 8 * head);
  if (lane < size - tail) target[tail + lane] = source[tail + lane];
}

// A warp per encoded block. Several CUDA blocks share a message; each finds all offsets.
constexpr int kGatherers = 32;
__global__ void __launch_bounds__(kThreads)
    gather_kernel(Slots from, const MessagePlace* messages, std::byte* to, std::uint32_t* bytes) {
  __shared__ Shared s;
  __shared__ unsigned offsets[kThreads];
  const MessagePlace message = messages[blockIdx.x];
  to += message.at;
  unsigned written = 0;
  for (int first = message.first; first < message.last; first += kThreads) {
    const int place = first + static_cast<int>(threadIdx.x);
    unsigned all = 0;
    const unsigned before = sum_before(s, place < message.last ? from.sizes[place] : 0, all);
    offsets[threadIdx.x] = written + before;
    __syncthreads();
    const int here = min(kThreads, message.last - first);
    const int own = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
    for (int i = own; i < here; i += kWarps * kGatherers) {
      const std::byte* const source = from.data + static_cast<std::size_t>(first + i) * from.stride;
      copy_by_warp(source, from.sizes[first + i], to + offsets[i]);
    }
    written += all;
    __syncthreads();
  }
  if (threadIdx.x == 0 && blockIdx.y == 0) bytes[blockIdx.x] = written;
}

__global__ void clear_gaps_kernel(const Gap* gaps, float* values) {
  const Gap gap = gaps[blockIdx.x];
  for (std::int64_t i = threadIdx.x; i < gap.count; i += blockDim.x) values[gap.first + i] = 0;
}

__global__ void __launch_bounds__(kThreads)
    find_not_finite_kernel(const float* values, std::int64_t count, int* not_finite) {
  const std::int64_t all = static_cast<std::int64_t>(gridDim.x) * kThreads;
  bool found = false;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += all)
    found |= magnitude_bits(values[i]) >= 0x7f800000U;
  if (found) *not_finite = 1;
}

}  // namespace

void gather(const Queue& on, const Slots& from, const MessagePlace* messages, int count,
            std::byte* to, std::uint32_t* bytes) {
  if (count == 0) return;
  gather_kernel<<<dim3(static_cast<unsigned>(count), kGatherers), kThreads, 0, on.stream>>>(
      from, messages, to, bytes);
  check_launch("gather");
}

void clear_gaps(const Queue& on, const Gap* gaps, int count, float* values) {
  if (count == 0) return;
  clear_gaps_kernel<<<static_cast<unsigned>(count), 64, 0, on.stream>>>(gaps, values);
  check_launch("clear_gaps");
}

void find_not_finite(const Queue& on, const float* values, std::int64_t count, int* not_finite) {
  if (count == 0) return;
  find_not_finite_kernel<<<static_cast<unsigned>(grid_size(on, count, kThreads * 4, 8)), kThreads,
                           0, on.stream>>>(values, count, not_finite);
  check_launch("find_not_finite");
}

}  // namespace tandem::cuda
