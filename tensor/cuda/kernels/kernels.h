// Tandem's own CUDA kernels, one .cu file per group below. They take pointers, not tensors, so nvcc
// needs no header outside this folder.
//
// Every call queues its work on `on.stream` and returns. Unless stated otherwise, pointers are
// device memory with 16-byte alignment. In functions with a `Type`, the activations (x, y, dy, dx)
// have that type, and everything else is f32. Arithmetic is f32. `accumulate` adds to the output.
// Results are deterministic: no sum depends on the order in which blocks run. Counts are elements,
// may be 0, and may exceed 2³¹.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::cuda {

enum class Type { f32, bf16 };

// Where kernels are queued. `scratch` is memory for partial sums, used by one kernel at a time.
struct Queue {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
  void* scratch = nullptr;  // kScratchBytes; its first kCounters ints are zero between kernels
};
inline constexpr std::size_t kScratchBytes = 32 << 20;
// With these counters, the last block of a kernel detects that it is last. It resets them to zero.
inline constexpr int kCounters = 1024;

// ---- elementwise.cu ----
void fill(const Queue& on, Type type, void* x, std::int64_t count, float value);
void add(const Queue& on, Type type, const void* a, const void* b, void* y, std::int64_t count);
void weighted_sum(const Queue& on, Type type, float alpha, const void* a, float beta, const void* b,
                  void* y, std::int64_t count);
void relu(const Queue& on, Type type, const void* x, void* y, std::int64_t count);  // NaN stays NaN
void relu_gradient(const Queue& on, Type type, const void* y, const void* dy, void* dx,
                   std::int64_t count, bool accumulate);

// Keeps exactly the same elements as tensor/cpu/elementwise.cpp. The Random has the key *step_key,
// split by `stream` (see base/random.h).
struct Dropout {
  const std::uint64_t* step_key;  // device memory
  std::uint64_t stream;
  double keep;
};
void dropout(const Queue& on, Type type, const Dropout& dropout, const void* x, void* y,
             std::int64_t count, bool accumulate);
void set_u64(const Queue& on, std::uint64_t* to, std::uint64_t value);

// ---- conversions.cu ----
void cast(const Queue& on, Type from_type, const void* from, Type to_type, void* to,
          std::int64_t count);
// Rows of `from_columns` become rows of `to_columns`: they are cut off or padded with zeros. Any
// alignment.
void resize_rows(const Queue& on, Type from_type, const void* from, std::int64_t from_columns,
                 Type to_type, void* to, std::int64_t to_columns, std::int64_t rows,
                 bool accumulate);
// to (f32) = or += from.
void add_to_f32(const Queue& on, Type from_type, const void* from, float* to, std::int64_t count,
                bool accumulate);
// y[r, c] = x[r, c]·scale[c] + offset[c], rounded after each operation as in data/loader.cpp.
void scale_bytes(const Queue& on, const std::uint8_t* x, const float* scale, const float* offset,
                 std::int64_t channels, Type type, void* y, std::int64_t count);

// ---- rows.cu ----
void add_bias(const Queue& on, Type type, const float* bias, void* y, std::int64_t rows,
              std::int64_t columns);
void sum_rows(const Queue& on, Type type, const void* x, float* sums, std::int64_t rows,
              std::int64_t columns, bool accumulate);
// masked = dy where y > 0, else 0; sums[c] = Σ_r masked[r, c]. `masked` may be dy, and `sums` may
// be null.
void relu_bias_gradient(const Queue& on, Type type, const void* y, const void* dy, void* masked,
                        float* sums, std::int64_t rows, std::int64_t columns, bool accumulate);

// ---- concat.cu ----
// Matrices [rows, columns] side by side.
struct Columns {
  void* data;  // null: skipped by the gradient
  std::int64_t columns;
  bool accumulate = false;
};
void concat(const Queue& on, Type type, std::span<const Columns> parts, void* y, std::int64_t rows,
            std::int64_t columns);
void concat_gradient(const Queue& on, Type type, const void* dy, std::span<const Columns> parts,
                     std::int64_t rows, std::int64_t columns);

// ---- softmax.cu ----
// As Backend::softmax_cross_entropy; a label outside [0, classes) makes the loss NaN.
void softmax_cross_entropy(const Queue& on, Type type, const void* logits,
                           const std::int32_t* labels, std::int64_t rows, std::int64_t classes,
                           float smoothing, float scale, float* probabilities, float* loss);
void softmax_cross_entropy_gradient(const Queue& on, Type type, const float* probabilities,
                                    const std::int32_t* labels, std::int64_t rows,
                                    std::int64_t classes, float smoothing, float scale,
                                    const float* dloss, void* dlogits, bool accumulate);
// *correct = number of rows whose largest logit (the first of equals) is at the label.
void count_correct(const Queue& on, Type type, const void* logits, const std::int32_t* labels,
                   std::int64_t rows, std::int64_t classes, std::int64_t* correct);

// ---- sgd.cu ----
struct SgdRates {
  float rate, momentum, weight_decay;
  bool nesterov, gradient_has_momentum;
};
// Backend::sgd in one pass. `low` becomes a bf16 copy of the value, or is null.
void sgd(const Queue& on, const SgdRates& rates, const float* gradient, float* momentum,
         float* value, void* low, std::int64_t count);

// ---- max_pool.cu, average_pool.cu ----
struct PoolShape {
  std::int64_t images, height, width, channels;  // of x
  std::int64_t out_height, out_width;            // of y
  std::int64_t window, stride, padding;
  bool count_padding = true;  // in a mean
};
void max_pool(const Queue& on, Type type, const PoolShape& shape, const void* x, void* y,
              std::uint8_t* winners);
void max_pool_gradient(const Queue& on, Type type, const PoolShape& shape,
                       const std::uint8_t* winners, const void* dy, void* dx, bool accumulate);
void average_pool(const Queue& on, Type type, const PoolShape& shape, const void* x, void* y);
void average_pool_gradient(const Queue& on, Type type, const PoolShape& shape, const void* dy,
                           void* dx, bool accumulate);
// These ignore window, stride and padding.
void adaptive_average_pool(const Queue& on, Type type, const PoolShape& shape, const void* x,
                           void* y);
void adaptive_average_pool_gradient(const Queue& on, Type type, const PoolShape& shape,
                                    const void* dy, void* dx, bool accumulate);
void global_average_pool(const Queue& on, Type type, const void* x, void* y, std::int64_t images,
                         std::int64_t pixels, std::int64_t channels);
void global_average_pool_gradient(const Queue& on, Type type, const void* dy, void* dx,
                                  std::int64_t images, std::int64_t pixels, std::int64_t channels,
                                  bool accumulate);

// ---- response_norm.cu ----
struct ResponseNorm {
  int size;
  float alpha, beta, k;
};
void response_norm(const Queue& on, Type type, const ResponseNorm& norm, const void* x, void* y,
                   std::int64_t rows, std::int64_t channels);
void response_norm_gradient(const Queue& on, Type type, const ResponseNorm& norm, const void* x,
                            const void* dy, void* dx, std::int64_t rows, std::int64_t channels,
                            bool accumulate);

// ---- batch_statistics.cu ----
// Statistics of x[rows, channels] per channel. The running ones may be null.
struct BatchStatistics {
  float epsilon;
  float* mean;
  float* inverse_deviation;
  float* running_mean;
  float* running_variance;  // moved towards the unbiased variance
  float momentum;
};
void batch_statistics(const Queue& on, Type type, const void* x, std::int64_t rows,
                      std::int64_t channels, const BatchStatistics& statistics);
void inverse_deviation(const Queue& on, const float* variance, float epsilon, float* result,
                       std::int64_t channels);

// ---- channel_norm.cu, channel_norm_gradient.cu ----
enum class NormAfter { nothing, relu, add_relu };
struct ChannelNorm {
  const float *mean, *inverse_deviation, *weight, *bias;  // [channels]
  NormAfter after;
};
// y = z, relu(z) or relu(z + residual), z = (x - mean)·inverse_deviation·weight + bias. With
// add_relu, bit i % 8 of mask[i / 8] is set if element i of y is above 0 or NaN. `mask` may be
// null.
void channel_norm(const Queue& on, Type type, const ChannelNorm& norm, const void* x,
                  const void* residual, void* y, std::uint8_t* mask, std::int64_t rows,
                  std::int64_t channels);
// The gradient if mean and inverse_deviation were computed from x. The gradient of y is dy, or dy +
// more if `more` is not null. Outputs that are not needed are null. dresidual (for add_relu) and dx
// must not overlap each other or an input.
struct ChannelNormGradients {
  void* dx;
  bool dx_accumulate;
  void* dresidual;
  bool dresidual_accumulate;
  float* dweight;
  bool dweight_accumulate;
  float* dbias;
  bool dbias_accumulate;
};
void channel_norm_gradient(const Queue& on, Type type, const ChannelNorm& norm, const void* x,
                           const std::uint8_t* mask, const void* dy, const void* more,
                           const ChannelNormGradients& into, std::int64_t rows,
                           std::int64_t channels);

// ---- fold.cu ----
// A convolution with stride `factor` over few channels equals one with stride 1 over folded pixels:
// factor² neighbours become the channels of one pixel. For images and filters,
//   folded[n, i, j, (a·factor + b)·channels + c] = x[n, row, column, c]
// with row = i·factor + a - padding and column = j·factor + b - padding. It is 0 where x has no
// such pixel, and in channels from factor²·channels on.
struct Fold {
  std::int64_t images, height, width, channels;  // of x
  std::int64_t factor, padding;
  std::int64_t out_height, out_width, out_channels;  // of `folded`; a pixel: a multiple of 16 bytes
};
void fold(const Queue& on, Type type, const Fold& shape, const void* x, void* folded);
// The inverse, to f32, for a fold that contains every pixel of x.
void unfold(const Queue& on, Type type, const Fold& shape, const void* folded, float* x,
            bool accumulate);

// ---- unroll.cu ----
// Writes all windows of an image, with stride 1 and without padding, as the rows of a matrix:
//   windows[n, i, j, u, v, c] = x[n, i + u, j + v, c]
struct Windows {
  std::int64_t images, height, width, channels;  // of x; a pixel: a multiple of 16 bytes
  std::int64_t window_height, window_width;
};
void unroll(const Queue& on, Type type, const Windows& shape, const void* x, void* windows);

// ---- compress.cu ----
// The same formats as dist/compress, bit for bit. `none` copies the values. `trunc16` writes 2
// bytes per element. `quant8` writes the scale of a block (f32), then a byte per element. Packed
// blocks are in the given order, each at a multiple of a whole block's size. *not_finite becomes 1
// if a value is NaN or infinite, and does not change otherwise.
struct BlockOrder {
  const std::int32_t* order;  // on the device: the block at each place among the packed ones
  std::int64_t count;         // values; the last block may be short
  std::int64_t block;         // values per block: a multiple of 4, at most 2048
};
void pack_none(const Queue& on, const float* values, float* packed, const BlockOrder& blocks,
               int* not_finite);
void unpack_none(const Queue& on, const float* packed, float* values, const BlockOrder& blocks);
void pack_trunc16(const Queue& on, const float* values, std::uint16_t* packed,
                  const BlockOrder& blocks, int* not_finite);
void unpack_trunc16(const Queue& on, const std::uint16_t* packed, float* values,
                    const BlockOrder& blocks);
void pack_quant8(const Queue& on, const float* values, std::byte* packed, const BlockOrder& blocks,
                 int* not_finite);
void unpack_quant8(const Queue& on, const std::byte* packed, float* values,
                   const BlockOrder& blocks);

}  // namespace tandem::cuda
