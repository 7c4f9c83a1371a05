// dist/codecs/dgc.cpp.
#include <cfloat>
#include <cstdint>

#include "tensor/cuda/kernels/encode_sparse.cuh"

namespace tandem::cuda {
namespace {

struct VelocityCoder {
  VelocityForm form;

  __device__ std::uint32_t encode(Shared& s, const OwnBlock& own, const float* values,
                                  std::byte* to) const {
    const int n = own.count;
    const std::int64_t begin = own.number * kEncodedBlock;
    float* const u = form.velocity + begin;
    float* const v = form.residual + begin;
    const float m = form.momentum;
    for_each_element(n, [&](int i) {
      const float g = values[i];
      u[i] = form.nesterov ? __fmul_rn(m, __fadd_rn(u[i], g)) : __fadd_rn(__fmul_rn(m, u[i]), g);
      s.x[i] = __fadd_rn(v[i], form.nesterov ? __fadd_rn(u[i], g) : u[i]);
    });
    __syncthreads();
    float sums[kEach];
    unsigned mask = 0, in_part = 0, keeps_velocity = 0;
    PartCursor at(form, begin, begin + own_place(0));
#pragma unroll
    for (int j = 0; j < kEach; ++j, at.step()) {
      sums[j] = own_place(j) < n ? s.x[own_place(j)] : 0;
      if (own_place(j) >= n || !at.in_part()) continue;
      in_part |= 1U << j;
      const unsigned size = magnitude_bits(sums[j]);
      if (at.whole()) keeps_velocity |= 1U << j;
      if (at.in_sample()) form.sample[at.sample()] = size;
      if (at.whole() || size >= at.threshold()) mask |= 1U << j;
    }
    unsigned all = 0;
    const unsigned before = sum_before(s, __popc(mask), all);
    const bool whole = better_whole(all, n);
    const std::uint32_t bytes =
        whole ? write_whole(sums, n, to) : write_some(sums, mask, before, all, to);
    const unsigned sent = whole ? in_part : mask;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if ((sent >> j & 1U) == 0) continue;
      s.x[own_place(j)] = 0;
      if ((keeps_velocity >> j & 1U) == 0) u[own_place(j)] = 0;
    }
    __syncthreads();
    for_each_element(n, [&](int i) { v[i] = form.remembers ? s.x[i] : 0; });
    return bytes;
  }

 private:
  // Goes through the elements of the flat gradient, and knows the part that each belongs to.
  class PartCursor {
   public:
    // Searches from `begin`, which is the same for all threads, so that they load the same parts.
    // Then each goes on to its own element.
    __device__ PartCursor(const VelocityForm& form, std::int64_t begin, std::int64_t flat)
        : form_(form), flat_(flat) {
      int low = 0, high = form.part_count;  // the first part that ends behind `begin`
      while (low < high) {
        const int middle = (low + high) / 2;
        if (form.parts[middle].end <= begin)
          low = middle + 1;
        else
          high = middle;
      }
      number_ = low - 1;
      next_part();
    }

    __device__ void step() {
      ++flat_;
      if (flat_ > next_sampled_) {
        next_sampled_ += stride_;
        ++sample_;
      }
      if (flat_ >= end_) next_part();
    }

    __device__ bool in_part() const { return flat_ >= first_; }
    __device__ bool whole() const { return whole_; }
    __device__ bool in_sample() const { return !whole_ && flat_ == next_sampled_; }
    __device__ std::int64_t sample() const { return sample_; }
    __device__ unsigned threshold() const { return threshold_; }

   private:
    __device__ void next_part() {
      do {
        if (++number_ >= form_.part_count) {
          first_ = end_ = next_sampled_ = INT64_MAX;
          return;
        }
        end_ = form_.parts[number_].end;
      } while (end_ <= flat_);
      const GradientPart& part = form_.parts[number_];
      first_ = part.first;
      stride_ = part.stride;
      whole_ = part.whole;
      const std::int64_t multiple = parts(max(flat_, first_), stride_);
      next_sampled_ = multiple * stride_;
      sample_ = part.sample_at + multiple - parts(first_, stride_);
      threshold_ = magnitude_bits(form_.thresholds[number_]);
    }

    const VelocityForm& form_;
    std::int64_t flat_;
    int number_;                // of the first part that ends behind the element
    std::int64_t first_, end_;  // of this part
    std::int64_t stride_ = 0;
    std::int64_t next_sampled_;  // the next element in the sample, from flat_ on,
    std::int64_t sample_ = 0;    // and its place there
    bool whole_ = false;
    unsigned threshold_ = 0;
  };
};

// A CUDA block per part finds its threshold: the magnitude that is `wanted`-th in the sample. Each
// round counts the magnitudes that begin with the bits found so far, by their next bits. The first
// round finds 11 bits, the others 10; their digits also have the last bit found before, which is
// the same in all.
constexpr int kSampleThreads = 1024, kDigits = 2 * kSampleThreads;
__global__ void __launch_bounds__(kSampleThreads)
    make_thresholds_kernel(const GradientPart* parts, const std::uint32_t* sample, double ratio,
                           float* thresholds) {
  __shared__ unsigned counts[kDigits], of_warps[32], digit, larger;
  const GradientPart part = parts[blockIdx.x];
  if (part.sample_count == 0) return;
  auto wanted = static_cast<unsigned>(
      max(1LL, llround(__dmul_rn(ratio, static_cast<double>(part.sample_count)))));
  sample += part.sample_at;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned found = 0;
  for (int bits = 31, shift = 20; bits > 0; bits = shift, shift -= 10) {  // not found yet
    for (unsigned i = threadIdx.x; i < kDigits; i += kSampleThreads) counts[i] = 0;
    __syncthreads();
#pragma unroll 8
    for (std::int64_t i = threadIdx.x; i < part.sample_count; i += kSampleThreads) {
      const unsigned size = sample[i];
      if (size >> bits == found >> bits) atomicAdd(&counts[size >> shift & (kDigits - 1)], 1U);
    }
    __syncthreads();
    // Thread 0 has the two largest digits, thread 1 the next two, and so on.
    const unsigned high = kDigits - 1 - 2 * threadIdx.x;
    const unsigned both = counts[high] + counts[high - 1];
    unsigned upto = sum_up_to_lane(both);
    if (lane == 31) of_warps[warp] = upto;
    __syncthreads();
    for (unsigned i = 0; i < warp; ++i) upto += of_warps[i];
    const unsigned before = upto - both;
    if (before < wanted && wanted <= upto) {
      const bool first = wanted <= before + counts[high];
      digit = first ? high : high - 1;
      larger = first ? before : before + counts[high];
    }
    __syncthreads();
    found |= digit << shift;
    wanted -= larger;
  }
  if (threadIdx.x == 0)
    thresholds[blockIdx.x] = __uint_as_float(max(found, magnitude_bits(FLT_MIN)));
}

}  // namespace

void encode(const Queue& on, const VelocityForm& form, const EncodedBlocks& blocks,
            const float* values, const Slots& to) {
  launch_encode(on, VelocityCoder{form}, blocks, values, to);
}

void make_thresholds(const Queue& on, const GradientPart* parts, int count,
                     const std::uint32_t* sample, double ratio, float* thresholds) {
  if (count == 0) return;
  make_thresholds_kernel<<<static_cast<unsigned>(count), kSampleThreads, 0, on.stream>>>(
      parts, sample, ratio, thresholds);
  check_launch("make_thresholds");
}

}  // namespace tandem::cuda
