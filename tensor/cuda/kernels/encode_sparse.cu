// dist/codecs/sparse.cpp, topk.cpp and randomk.cpp.
#include "tensor/cuda/kernels/encode_sparse.cuh"

namespace tandem::cuda {
namespace {

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

}  // namespace tandem::cuda
