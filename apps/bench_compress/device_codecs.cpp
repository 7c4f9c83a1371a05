#include "apps/bench_compress/device_codecs.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "base/random.h"
#include "base/statistics.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_table.h"
#include "dist/transport/threads.h"
#include "tensor/cuda/cuda_backend.h"

namespace tandem {
namespace {

// The median of a few calls, after one that does not count. Each must wait for the GPU.
double median_seconds(const std::function<void()>& f) {
  constexpr int kRounds = 11;
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    if (round > 0)
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return quantile(seconds, 0.5);
}

class DeviceBench {
 public:
  DeviceBench(const std::string& text, std::int64_t count)
      : device_(cuda_backend({})),
        weight_({count / kColumns, kColumns}, Parameter::Make()),
        set_({{"weight", &weight_}}, device_),
        transport_(network_.transport(0)),
        none_(make_none()) {
    Random random(1);
    gradient_ = Tensor::zeros({set_.values().count()}, Dtype::f32, device_);
    std::vector<float> values(static_cast<std::size_t>(gradient_.count() + kGradients * kBlock));
    for (float& value : values) value = static_cast<float>(random.normal());
    gradients_ = Tensor::from(values, {std::ssize(values)}, device_);
    const CodecChoice choice = *parse_compression(text);
    codec_ = choice.info->make(choice, {.parameters = set_, .device = device_});
    sum_ = codec_->make_sum(
        {.transport = *transport_, .ranks = 1, .compressor = *none_, .spans = spans_},
        {.count = gradient_.count()});
    staging_ = sum_->make_staging();
  }

  void report(const std::string& text) {
    const double copy = median_seconds([&] { next_gradient(); });
    fmt::print("{:14} {:9.3f}", text, 1e3 * copy);
    if (auto* const encoded = dynamic_cast<EncodedStaging*>(staging_.get()))
      report_steps(*encoded);
    else
      fmt::print(" {:>9} {:>9} {:>9}", "-", "-", "-");
    // All steps of a sum with one worker: check, encode, add, encode the sum, decode.
    const double all = median_seconds([&] {
                         begin();
                         sum_->sum(*staging_);
                         staging_->finish()->wait();
                       }) -
                       copy;
    fmt::print(" {:9.3f}\n", 1e3 * all);
  }

 private:
  static constexpr std::int64_t kColumns = 1024;
  static constexpr std::int64_t kGradients = 128;

  // Another one in each iteration: with the same one, momentum and residuals would only grow.
  void next_gradient() {
    const std::int64_t first = iteration_ % kGradients * kBlock;
    device_.backend().copy(gradients_.view(first, gradient_.shape()), gradient_);
    device_.backend().record_event()->wait();
  }
  void begin() {
    next_gradient();
    staging_->begin(gradient_, nullptr, sum_->segments(), Staging::Fill::from_values);
    require(staging_->finite(), "the gradient is not finite");
    codec_->begin(++iteration_);
  }

  void report_steps(EncodedStaging& staging) {
    const BlockCodec& codec = *codec_->blocks();
    const std::size_t segments = sum_->segments().size();
    const double check = median_seconds([&] { begin(); });
    const auto encode = [&] {
      begin();
      staging.encode(codec_->blocks()->encoding());
      staging.wait(0);
    };
    for (int i = 0; i < kGradients; ++i) encode();  // until residuals grow slowly
    const double encode_s = median_seconds(encode) - check;
    encode();
    std::vector<EncodedStaging::Message> messages;
    for (std::size_t i = 0; i < segments; ++i)
      messages.push_back(
          {.data = staging.encoded(i).data(),
           .offsets = codec.offsets_in(staging.encoded(i), sum_->segments()[i].count)});
    const double add_s = median_seconds([&] {
      for (std::size_t i = 0; i < segments; ++i) staging.add(i, {&messages[i], 1});
      staging.sum(segments - 1);
    });
    for (std::size_t i = 0; i < segments; ++i)
      staging.put_sum(i, codec.sum_offsets_in(staging.sum(i), sum_->segments()[i].count));
    const double decode_s = median_seconds([&] {
      staging.begin(gradient_, nullptr, sum_->segments(), Staging::Fill::from_values);
      staging.finish()->wait();
    });
    fmt::print(" {:9.3f} {:9.3f} {:9.3f}", 1e3 * encode_s, 1e3 * add_s, 1e3 * decode_s);
  }

  Device device_;
  Parameter weight_;
  ParameterSet set_;
  ThreadsNetwork network_{1};
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Compressor> none_;
  Spans spans_;
  Tensor gradients_;  // overlapping: each begins a block later than the one before
  Tensor gradient_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<AllReduce> sum_;
  std::unique_ptr<Staging> staging_;
  std::int64_t iteration_ = 1'000'000;  // after any warm-up
};

}  // namespace

void report_codecs_on_gpu(const std::vector<std::string>& codecs, std::int64_t count) {
  fmt::print(
      "\ncodecs on the GPU: milliseconds for {:.0f} MB. Encoded bytes are written to the host and\n"
      "read from it. `all` is a sum with one worker, with a check that the values are finite\n",
      4e-6 * static_cast<double>(count));
  fmt::print("{:14} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "", "copy", "encode", "add", "decode", "all");
  for (const std::string& text : codecs) DeviceBench(text, count).report(text);
}

}  // namespace tandem
