// dist/codecs/levels.cpp and onebit.cpp. Every operation is rounded as there.
#include "tensor/cuda/kernels/encode.cuh"

namespace tandem::cuda {
namespace {

__device__ int groups_of(int count) { return (count + 7) / 8; }

// As in dist/codecs/bit_planes.h.
__host__ __device__ constexpr int bit_floor(int number) {
  int power = 1;
  while (2 * power <= number) power *= 2;
  return power;
}
template <int bits, int shift, class F>
__device__ void for_each_plane(int groups, F&& f) {
  if constexpr (shift < bits) {
    constexpr int kWidth = bit_floor(bits - shift);
    f.template operator()<kWidth, shift>(groups * shift, groups * kWidth);
    for_each_plane<bits, shift + kWidth>(groups, f);
  }
}

template <int bits>
__device__ void pack(const Shared& s, int groups, std::byte* to) {
  for_each_plane<bits, 0>(groups, [&]<int w, int shift>(int place, int q) {
    constexpr unsigned kMask = (1U << w) - 1;
    for (int j = static_cast<int>(threadIdx.x); j < q; j += kThreads) {
      unsigned byte = 0;
#pragma unroll
      for (int k = 0; k < 8 / w; ++k) byte |= (s.codes[j + k * q] >> shift & kMask) << (w * k);
      to[place + j] = static_cast<std::byte>(byte);
    }
  });
}

template <int bits>
__device__ unsigned code_at(const std::byte* from, int groups, int i) {
  unsigned code = 0;
  for_each_plane<bits, 0>(groups, [&]<int w, int shift>(int place, int q) {
    constexpr unsigned kMask = (1U << w) - 1;
    const int k = i / q;
    code |= (static_cast<unsigned>(from[place + i - k * q]) >> (w * k) & kMask) << shift;
  });
  return code;
}

// ---- levels ----
template <int bits>
struct LevelCoder {
  float clip;
  std::uint64_t key;

  static constexpr int kLevels = (1 << (bits - 1)) - 1;
  static constexpr int kScaleBytes = 4;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    for_each_element(own.count, [&](int i) { s.x[i] = values[i]; });
    return encode_shared(s, own, to);
  }

  __device__ std::uint32_t encode_shared(Shared& s, const OwnBlock& own, std::byte* to) const {
    constexpr float kSmallest = 1e-31F;
    constexpr float kZero = kLevels * 0x1p16F + 0.5F;
    constexpr float kMost = 2 * kLevels * 0x1p16F + 0.5F;
    const int n = own.count;
    unsigned largest = 0;
    for_each_element(n, [&](int i) { largest = max(largest, magnitude_bits(s.x[i])); });
    float scale = __uint_as_float(block_max(s, largest));
    if (clip > 0) {
      const float most = __fmul_rn(clip, deviation(s, n));
      if (most < scale) scale = most;
    }
    if (scale < kSmallest) scale = 0;
    if (threadIdx.x == 0) *reinterpret_cast<float*>(to) = scale;

    const bool rounds = scale > 0 && magnitude_bits(scale) < 0x7f800000U;
    if (rounds && threadIdx.x < 32) draw(s, split_key(key, static_cast<std::uint64_t>(own.number)));
    __syncthreads();
    constexpr int kHalf = kEncodedBlock / 2;
    const int half = min(n, kHalf), groups = groups_of(n);
    const float parts_per_unit = rounds ? __fdiv_rn(kLevels * 0x1p16F, scale) : 0;
    for_each_element(groups * 8, [&](int i) {
      if (i >= n) {
        s.codes[i] = 0;
        return;
      }
      if (!rounds) {
        s.codes[i] = kLevels;
        return;
      }
      const float size = __fadd_rn(__fmul_rn(s.x[i], parts_per_unit), kZero);
      const int cut = min(max(__float_as_int(size), 0), __float_as_int(kMost));
      const auto in_parts = static_cast<unsigned>(static_cast<int>(__int_as_float(cut)));
      const unsigned random = i < half ? s.random[i] & 0xffffU : s.random[i - half] >> 16;
      s.codes[i] = static_cast<std::uint8_t>((in_parts + random) >> 16);
    });
    __syncthreads();
    pack<bits>(s, groups, to + kScaleBytes);
    return static_cast<std::uint32_t>(kScaleBytes + groups * bits);
  }

  template <bool set>
  __device__ void read(Shared& s, const OwnBlock& own, const std::byte* from) const {
    const int groups = groups_of(own.count);
    const std::byte* const bytes = fetch(s, from, kScaleBytes + groups * bits);
    const float step = __fdiv_rn(load_f32(bytes), static_cast<float>(kLevels));
    for_each_element(own.count, [&](int i) {
      const auto code = static_cast<int>(code_at<bits>(bytes + kScaleBytes, groups, i));
      const float value = __fmul_rn(static_cast<float>(code - kLevels), step);
      s.x[i] = set ? value : __fadd_rn(s.x[i], value);
    });
  }

 private:
  // A warp draws; lane k has stream k of the host.
  static __device__ void draw(Shared& s, std::uint64_t block_key) {
    std::uint32_t x =
        static_cast<std::uint32_t>(block_key ^ block_key >> 32) + threadIdx.x * 0x9e3779b9U;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    x = (x ^ (x >> 16)) | 1U;
    for (int i = static_cast<int>(threadIdx.x); i < kEncodedBlock / 2; i += 32) {
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
      s.random[i] = x;
    }
  }

  // As in terngrad.cpp.
  static __device__ float deviation(Shared& s, int n) {
    const int even = n / kLanes * kLanes;
    if (threadIdx.x < kLanes) {
      float sum = 0;
      for (int i = static_cast<int>(threadIdx.x); i < even; i += kLanes)
        sum = __fadd_rn(sum, __fmul_rn(s.x[i], s.x[i]));
      s.lanes[0][threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      float squares = 0;
      for (int i = even; i < n; ++i) squares = __fadd_rn(squares, __fmul_rn(s.x[i], s.x[i]));
      for (int k = 0; k < kLanes; ++k) squares = __fadd_rn(squares, s.lanes[0][k]);
      s.numbers[0] = __fsqrt_rn(__fdiv_rn(squares, static_cast<float>(n)));
    }
    __syncthreads();
    return s.numbers[0];
  }
};

// Calls f(the coder), with the number of bits known to the compiler.
template <class F>
void with_coder(const LevelForm& form, F&& f) {
  switch (form.bits) {
    case 2:
      return f(LevelCoder<2>{form.clip, form.key});
    case 3:
      return f(LevelCoder<3>{form.clip, form.key});
    case 4:
      return f(LevelCoder<4>{form.clip, form.key});
    case 5:
      return f(LevelCoder<5>{form.clip, form.key});
    case 6:
      return f(LevelCoder<6>{form.clip, form.key});
    case 7:
      return f(LevelCoder<7>{form.clip, form.key});
    case 8:
      return f(LevelCoder<8>{form.clip, form.key});
    default:
      throw std::runtime_error("levels of " + std::to_string(form.bits) + " bits");
  }
}

// ---- signs ----
struct SignCoder {
  float* residual;  // null: nothing is remembered

  static constexpr int kMeansBytes = 8;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    for_each_element(own.count, [&](int i) { s.x[i] = values[i]; });
    return encode_shared(s, own, to);
  }

  __device__ std::uint32_t encode_shared(Shared& s, const OwnBlock& own, std::byte* to) const {
    const int n = own.count, groups = groups_of(n);
    float* const rest = residual == nullptr ? nullptr : residual + own.number * kEncodedBlock;
    if (rest != nullptr) for_each_element(n, [&](int i) { s.x[i] = __fadd_rn(rest[i], s.x[i]); });
    __syncthreads();
    find_means(s, n);
    const float positive = s.numbers[0], negative = s.numbers[1];
    if (threadIdx.x == 0) {
      reinterpret_cast<float*>(to)[0] = positive;
      reinterpret_cast<float*>(to)[1] = negative;
    }
    for_each_element(groups * 8, [&](int i) {
      const bool below = i < n && __float_as_int(s.x[i]) < 0;
      s.codes[i] = below ? 1 : 0;
      if (i < n && rest != nullptr) rest[i] = __fsub_rn(s.x[i], below ? negative : positive);
    });
    __syncthreads();
    pack<1>(s, groups, to + kMeansBytes);
    return static_cast<std::uint32_t>(kMeansBytes + groups);
  }

  template <bool set>
  __device__ void read(Shared& s, const OwnBlock& own, const std::byte* from) const {
    const int groups = groups_of(own.count);
    const std::byte* const bytes = fetch(s, from, kMeansBytes + groups);
    const float positive = load_f32(bytes), negative = load_f32(bytes + 4);
    for_each_element(own.count, [&](int i) {
      const float value = code_at<1>(bytes + kMeansBytes, groups, i) != 0 ? negative : positive;
      s.x[i] = set ? value : __fadd_rn(s.x[i], value);
    });
  }

 private:
  // The mean of elements ≥ 0 and of the others, into s.numbers.
  static __device__ void find_means(Shared& s, int n) {
    const int even = n / kLanes * kLanes;
    if (threadIdx.x < kLanes) {
      float positive = 0, negative = 0;
      int below = 0;
      const auto add = [&](float value) {
        const int bits = __float_as_int(value), mask = bits >> 31;
        positive = __fadd_rn(positive, __int_as_float(bits & ~mask));
        negative = __fadd_rn(negative, __int_as_float(bits & mask));
        below -= mask;
      };
      for (int i = static_cast<int>(threadIdx.x); i < even; i += kLanes) add(s.x[i]);
      if (threadIdx.x == 0)
        for (int i = even; i < n; ++i) add(s.x[i]);
      s.lanes[0][threadIdx.x] = positive;
      s.lanes[1][threadIdx.x] = negative;
      s.counts[threadIdx.x] = below;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      float positive = 0, negative = 0;
      int below = 0;
      for (int k = 0; k < kLanes; ++k) {
        positive = __fadd_rn(positive, s.lanes[0][k]);
        negative = __fadd_rn(negative, s.lanes[1][k]);
        below += s.counts[k];
      }
      const auto many_below = static_cast<float>(below);
      const float others = __fsub_rn(static_cast<float>(n), many_below);
      s.numbers[0] = others > 0 ? __fdiv_rn(positive, others) : 0;
      s.numbers[1] = many_below > 0 ? __fdiv_rn(negative, many_below) : 0;
    }
    __syncthreads();
  }
};

}  // namespace

void encode(const Queue& on, const LevelForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to) {
  with_coder(form, [&](const auto& coder) { launch_encode(on, coder, blocks, values, to); });
}

void add_encoded(const Queue& on, const LevelForm& form, const LevelForm& of_sum,
                 const EncodedBlocks& blocks, const EncodedMessages& from, const Slots& to) {
  if (of_sum.bits != 8) throw std::runtime_error("sums of levels have 8 bits");
  with_coder(form, [&](const auto& coder) {
    launch_add(on, coder, LevelCoder<8>{of_sum.clip, of_sum.key}, blocks, from, to);
  });
}

void decode(const Queue& on, const LevelForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values) {
  with_coder(form, [&](const auto& coder) { launch_decode(on, coder, blocks, from, values); });
}

void encode(const Queue& on, const SignForm& form, const EncodedBlocks& blocks, const float* values,
            const Slots& to) {
  launch_encode(on, SignCoder{form.residual}, blocks, values, to);
}

void add_encoded(const Queue& on, const SignForm& of_sum, const EncodedBlocks& blocks,
                 const EncodedMessages& from, const Slots& to) {
  launch_add(on, SignCoder{nullptr}, SignCoder{of_sum.residual}, blocks, from, to);
}

void decode(const Queue& on, const SignForm& form, const EncodedBlocks& blocks,
            const EncodedMessages& from, float* values) {
  launch_decode(on, SignCoder{form.residual}, blocks, from, values);
}

}  // namespace tandem::cuda
