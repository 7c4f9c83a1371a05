// dist/codecs/sparse.cpp, topk.cpp, randomk.cpp and dgc.cpp.
#include <cfloat>

#include "tensor/cuda/kernels/encode.cuh"

namespace tandem::cuda {
namespace {

constexpr unsigned kWhole = 0xffffU;  // in place of the number: all values follow
constexpr int kNumberBytes = 2, kPlaceBytes = 2, kValueBytes = 4;

__device__ bool better_whole(unsigned chosen, int count) {
  return chosen * (kPlaceBytes + kValueBytes) >= static_cast<unsigned>(count) * kValueBytes;
}

// In this file, a thread has neighbouring elements, so that places come in ascending order.
__device__ int own_place(int j) { return static_cast<int>(threadIdx.x) * kEach + j; }

__device__ std::uint32_t write_whole(const float (&x)[kEach], int n, std::byte* to) {
  if (threadIdx.x == 0) store_u16(to, kWhole);
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (own_place(j) < n) store_f32(to + kNumberBytes + own_place(j) * kValueBytes, x[j]);
  return static_cast<std::uint32_t>(kNumberBytes + n * kValueBytes);
}

// Writes the elements of this mask: bit j is the thread's element j. `before` such elements belong
// to earlier threads.
__device__ std::uint32_t write_some(const float (&x)[kEach], unsigned mask, unsigned before,
                                    unsigned all, std::byte* to) {
  if (threadIdx.x == 0) store_u16(to, all);
  std::byte* const places = to + kNumberBytes;
  std::byte* const values = places + all * kPlaceBytes;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if ((mask >> j & 1U) != 0) {
      store_u16(places + before * kPlaceBytes, static_cast<unsigned>(own_place(j)));
      store_f32(values + before * kValueBytes, x[j]);
      ++before;
    }
  return static_cast<std::uint32_t>(kNumberBytes + all * (kPlaceBytes + kValueBytes));
}

// ---- sums: what is not zero ----
struct SparseCoder {
  __device__ std::uint32_t encode_shared(Shared& s, const OwnBlock& own, std::byte* to) const {
    float x[kEach];
    unsigned mask = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      x[j] = own_place(j) < own.count ? s.x[own_place(j)] : 0;
      mask |= (x[j] != 0 ? 1U : 0U) << j;
    }
    unsigned all = 0;
    const unsigned before = sum_before(s, __popc(mask), all);
    return better_whole(all, own.count) ? write_whole(x, own.count, to)
                                        : write_some(x, mask, before, all, to);
  }

  template <bool set>
  __device__ void read(Shared& s, const OwnBlock& own, const std::byte* from) const {
    const unsigned number = load_u16(from);
    const bool whole = number == kWhole;
    const int elements = whole ? own.count : static_cast<int>(number);
    const std::byte* const bytes =
        fetch(s, from,
              kNumberBytes + elements * (whole ? kValueBytes : kPlaceBytes + kValueBytes)) +
        kNumberBytes;
    const std::byte* const values = whole ? bytes : bytes + elements * kPlaceBytes;
    if (set && !whole) {
      for_each_element(own.count, [&](int i) { s.x[i] = 0; });
      __syncthreads();
    }
    for (int i = static_cast<int>(threadIdx.x); i < elements; i += kThreads) {
      const int place = whole ? i : static_cast<int>(load_u16(bytes + i * kPlaceBytes));
      const float value = load_f32(values + i * kValueBytes);
      s.x[place] = set ? value : __fadd_rn(s.x[place], value);
    }
  }
};

// ---- the largest ----
struct LargestCoder {
  float* residual;  // null: nothing is remembered
  int k, k_of_short;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    const int n = own.count;
    const auto wanted = static_cast<unsigned>(n == kEncodedBlock ? k : k_of_short);
    float* const rest = residual == nullptr ? nullptr : residual + own.number * kEncodedBlock;
    for_each_element(
        n, [&](int i) { s.x[i] = rest == nullptr ? values[i] : __fadd_rn(rest[i], values[i]); });
    __syncthreads();
    float x[kEach];
    unsigned sizes[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      x[j] = own_place(j) < n ? s.x[own_place(j)] : 0;
      sizes[j] = magnitude_bits(x[j]);
    }
    std::uint32_t bytes = 0;
    unsigned mask = 0;
    if (better_whole(wanted, n)) {
      bytes = write_whole(x, n, to);
      mask = 0xffU;
    } else {
      const unsigned least = kth_largest(s, sizes, wanted, n);
      // The lower half of a number counts larger elements, the upper half equal ones.
      unsigned counts = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (own_place(j) < n) counts += sizes[j] > least ? 1U : sizes[j] == least ? 0x10000U : 0U;
      unsigned all = 0;
      const unsigned before = sum_before(s, counts, all);
      const unsigned equal_wanted = wanted - (all & 0xffffU);
      unsigned equal = before >> 16;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (own_place(j) < n && (sizes[j] > least || (sizes[j] == least && equal++ < equal_wanted)))
          mask |= 1U << j;
      bytes = write_some(x, mask, (before & 0xffffU) + min(before >> 16, equal_wanted), wanted, to);
    }
    if (rest != nullptr) {
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (own_place(j) < n) rest[own_place(j)] = (mask >> j & 1U) != 0 ? 0 : x[j];
    }
    return bytes;
  }

 private:
  // The largest number that at least k magnitudes reach, found bit by bit.
  static __device__ unsigned kth_largest(Shared& s, const unsigned (&sizes)[kEach], unsigned wanted,
                                         int n) {
    unsigned least = 0;
    for (int bit = 30; bit >= 0; --bit) {
      const unsigned tried = least | 1U << bit;
      unsigned reach = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) reach += own_place(j) < n && sizes[j] >= tried ? 1 : 0;
      if (block_sum(s, reach) >= wanted) least = tried;
    }
    return least;
  }
};

// ---- chosen at random ----
struct ChosenCoder {
  float* residual;  // null: nothing is remembered
  int k, k_of_short;
  std::uint64_t key;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    float* const rest = residual == nullptr ? nullptr : residual + own.number * kEncodedBlock;
    for_each_element(own.count, [&](int i) {
      s.x[i] = rest == nullptr ? values[i] : __fadd_rn(rest[i], values[i]);
    });
    const std::uint32_t bytes = encode_shared(s, own, to);
    if (rest != nullptr) {
      __syncthreads();
      for_each_chosen(s, own, [&](int, int place) { s.x[place] = 0; });
      __syncthreads();
      for_each_element(own.count, [&](int i) { rest[i] = s.x[i]; });
    }
    return bytes;
  }

  __device__ std::uint32_t encode_shared(Shared& s, const OwnBlock& own, std::byte* to) const {
    __syncthreads();
    for_each_chosen(s, own,
                    [&](int i, int place) { reinterpret_cast<float*>(to)[i] = s.x[place]; });
    return static_cast<std::uint32_t>(k_of(own) * kValueBytes);
  }

  template <bool set>
  __device__ void read(Shared& s, const OwnBlock& own, const std::byte* from) const {
    const std::byte* const bytes = fetch(s, from, k_of(own) * kValueBytes);
    if (set) {
      for_each_element(own.count, [&](int i) { s.x[i] = 0; });
      __syncthreads();
    }
    for_each_chosen(s, own, [&](int i, int place) {
      const float value = load_f32(bytes + i * kValueBytes);
      s.x[place] = set ? value : __fadd_rn(s.x[place], value);
    });
  }

 private:
  __device__ int k_of(const OwnBlock& own) const {
    return own.count == kEncodedBlock ? k : k_of_short;
  }

  // Calls f(i, the place of the value number i).
  template <class F>
  __device__ void for_each_chosen(Shared& s, const OwnBlock& own, F&& f) const {
    unsigned all = 1;
    while (all < static_cast<unsigned>(own.count)) all *= 2;
    const std::uint64_t block_key = split_key(key, static_cast<std::uint64_t>(own.number));
    std::uint64_t next = 0;
    const unsigned step = below(block_key, next, all) | 1U, first = below(block_key, next, all);
    const int wanted = k_of(own);
    if (all == static_cast<unsigned>(own.count)) {
      for (int i = static_cast<int>(threadIdx.x); i < wanted; i += kThreads)
        f(i, static_cast<int>((first + static_cast<unsigned>(i) * step) & (all - 1)));
      return;
    }
    // The short block: some places are behind its end, so one thread makes the list.
    auto* const places = reinterpret_cast<std::uint16_t*>(s.random);
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned place = first;
      for (int found = 0; found < wanted; place = (place + step) & (all - 1))
        if (place < static_cast<unsigned>(own.count))
          places[found++] = static_cast<std::uint16_t>(place);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < wanted; i += kThreads) f(i, places[i]);
  }

  // Random::below(n) for a power of two.
  static __device__ unsigned below(std::uint64_t block_key, std::uint64_t& next, unsigned n) {
    const std::uint64_t limit = ~std::uint64_t{0} - (n - 1);
    std::uint64_t value = 0;
    do value = mix64(block_key + next++ * 0x9e3779b97f4a7c15ULL);
    while (value >= limit);
    return static_cast<unsigned>(value % n);
  }
};

// ---- velocities ----
struct VelocityCoder {
  VelocityForm form;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    const int n = own.count;
    const std::int64_t begin = own.number * kEncodedBlock;
    float* const u = form.velocity + begin;
    float* const v = form.residual + begin;
    float sums[kEach];
    unsigned mask = 0, in_part = 0, keeps_velocity = 0;
    int part = first_part(begin + own_place(0));
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = own_place(j);
      sums[j] = 0;
      if (i >= n) continue;
      const float m = form.momentum, g = values[i];
      const float speed =
          form.nesterov ? __fmul_rn(m, __fadd_rn(u[i], g)) : __fadd_rn(__fmul_rn(m, u[i]), g);
      const float sum = __fadd_rn(v[i], form.nesterov ? __fadd_rn(speed, g) : speed);
      u[i] = speed;
      sums[j] = sum;
      const std::int64_t flat = begin + i;
      while (part < form.part_count && flat >= form.parts[part].end) ++part;
      if (part == form.part_count || flat < form.parts[part].first) continue;
      const GradientPart& own_part = form.parts[part];
      in_part |= 1U << j;
      if (own_part.whole) {
        keeps_velocity |= 1U << j;
        mask |= 1U << j;
        continue;
      }
      if (flat % own_part.stride == 0)
        form.sample[own_part.sample_at + flat / own_part.stride -
                    parts(own_part.first, own_part.stride)] = magnitude_bits(sum);
      if (magnitude_bits(sum) >= magnitude_bits(form.thresholds[part])) mask |= 1U << j;
    }
    unsigned all = 0;
    const unsigned before = sum_before(s, __popc(mask), all);
    const bool whole = better_whole(all, n);
    const std::uint32_t bytes =
        whole ? write_whole(sums, n, to) : write_some(sums, mask, before, all, to);
    const unsigned sent = whole ? in_part : mask;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = own_place(j);
      if (i >= n) continue;
      const bool is_sent = (sent >> j & 1U) != 0;
      v[i] = is_sent || !form.remembers ? 0 : sums[j];
      if (is_sent && (keeps_velocity >> j & 1U) == 0) u[i] = 0;
    }
    return bytes;
  }

 private:
  // The first part that ends behind this element.
  __device__ int first_part(std::int64_t flat) const {
    int low = 0, high = form.part_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (form.parts[middle].end <= flat)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// A CUDA block per part finds its threshold, two bits at a time: `counts` has how many magnitudes
// reach each of three numbers.
constexpr int kSampleThreads = 1024;
__global__ void __launch_bounds__(kSampleThreads)
    make_thresholds_kernel(const GradientPart* parts, const std::uint32_t* sample, double ratio,
                           float* thresholds) {
  __shared__ unsigned counts[3];
  const GradientPart part = parts[blockIdx.x];
  if (part.sample_count == 0) return;
  const auto wanted = static_cast<unsigned>(
      max(1LL, llround(__dmul_rn(ratio, static_cast<double>(part.sample_count)))));
  sample += part.sample_at;
  unsigned least = 0;
  for (int bit = 30; bit >= 0; bit -= 2) {
    if (threadIdx.x < 3) counts[threadIdx.x] = 0;
    __syncthreads();
    unsigned reach[3] = {};
#pragma unroll 8
    for (std::int64_t i = threadIdx.x; i < part.sample_count; i += kSampleThreads) {
      const unsigned size = sample[i];
#pragma unroll
      for (unsigned k = 0; k < 3; ++k) reach[k] += size >= (least | (k + 1) << bit) ? 1 : 0;
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const unsigned of_warp = __reduce_add_sync(0xffffffffU, reach[k]);
      if (threadIdx.x % 32 == 0) atomicAdd(&counts[k], of_warp);
    }
    __syncthreads();
    // More magnitudes reach a smaller number.
    const unsigned digit = (counts[0] >= wanted ? 1U : 0U) + (counts[1] >= wanted ? 1U : 0U) +
                           (counts[2] >= wanted ? 1U : 0U);
    least |= digit << bit;
    __syncthreads();
  }
  if (threadIdx.x == 0)
    thresholds[blockIdx.x] = __uint_as_float(max(least, magnitude_bits(FLT_MIN)));
}

}  // namespace

void encode(const Queue& on, const LargestForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to) {
  launch_encode(on, LargestCoder{form.residual, form.k, form.k_of_short}, blocks, values, to);
}

void encode(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to) {
  launch_encode(on, ChosenCoder{form.residual, form.k, form.k_of_short, form.key}, blocks, values,
                to);
}

void encode(const Queue& on, const VelocityForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to) {
  launch_encode(on, VelocityCoder{form}, blocks, values, to);
}

void add_encoded(const Queue& on, const SparseForm&, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to) {
  launch_add(on, SparseCoder{}, SparseCoder{}, blocks, from, to);
}

void add_encoded(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to) {
  const ChosenCoder coder{nullptr, form.k, form.k_of_short, form.key};
  launch_add(on, coder, coder, blocks, from, to);
}

void decode(const Queue& on, const SparseForm&, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values) {
  launch_decode(on, SparseCoder{}, blocks, from, values);
}

void decode(const Queue& on, const ChosenForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values) {
  launch_decode(on, ChosenCoder{nullptr, form.k, form.k_of_short, form.key}, blocks, from, values);
}

void make_thresholds(const Queue& on, const GradientPart* parts, int count,
                     const std::uint32_t* sample, double ratio, float* thresholds) {
  if (count == 0) return;
  make_thresholds_kernel<<<static_cast<unsigned>(count), kSampleThreads, 0, on.stream>>>(
      parts, sample, ratio, thresholds);
  check_launch("make_thresholds");
}

}  // namespace tandem::cuda
