// Speed of compressors and codecs as a share of memcpy's over the same f32 bytes, on one core.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <ctime>
#include <functional>

#include "apps/bench_compress/device_codecs.h"
#include "base/random.h"
#include "base/statistics.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_table.h"
#include "dist/compress/compressor.h"
#include "dist/transport/threads.h"
#include "train/app.h"
#include "train/command_line.h"

using namespace tandem;

namespace {

struct Buffers {
  Buffers(const Compressor& c, std::int64_t count)
      : values(static_cast<std::size_t>(count)),
        other(values.size()),
        packed(c.bytes(count)),
        received(packed.size()) {
    Random random(1);
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    c.compress(values, received);
  }
  std::vector<float> values, other;
  std::vector<std::byte> packed, received;
};

// The median time of each function in seconds of the processor, so that other programs do not
// count. The functions take turns, so that a noisy machine disturbs all equally.
std::vector<double> medians(const std::vector<std::function<void()>>& functions) {
  constexpr int kRounds = 41;
  std::vector<std::vector<double>> seconds(functions.size());
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const std::clock_t begin = std::clock();
      functions[i]();
      seconds[i].push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
  std::vector<double> result;
  for (auto& times : seconds) result.push_back(quantile(times, 0.5));
  return result;
}

void report(const Compressor& c, std::int64_t count) {
  Buffers b(c, count);
  const double f32_bytes = static_cast<double>(count) * sizeof(float);
  const auto seconds = medians({
      [&] { std::memcpy(b.other.data(), b.values.data(), b.values.size() * sizeof(float)); },
      [&] { c.compress(b.values, b.packed); },
      [&] { c.decompress(b.received, b.other); },
      [&] { c.add(b.received, b.values, b.packed); },
  });
  fmt::print("{:13} {:6.0f} MB {:12.1f} {:11.2f} {:11.2f} {:9.2f}\n", c.name(), f32_bytes / 1e6,
             f32_bytes / seconds[0] / 1e9, seconds[0] / seconds[1], seconds[0] / seconds[2],
             seconds[0] / seconds[3]);
}

// A gradient of one matrix, and what a worker and an owner of blocks do with it.
class CodecBench {
 public:
  CodecBench(const std::string& text, std::int64_t count, int workers)
      : workers_(workers),
        weight_({count / kColumns, kColumns}, Parameter::Make()),
        set_({{"weight", &weight_}}, cpu_device(1)),
        values_(static_cast<std::size_t>(set_.values().count())),
        other_(values_.size()) {
    Random random(1);
    for (float& value : values_) value = static_cast<float>(random.normal());
    const CodecChoice choice = *parse_compression(text);
    codec_ = choice.info->make(choice, {.parameters = set_, .workers = workers});
    codec_->begin(iteration_);
    if (BlockCodec* blocks = codec_->blocks()) {
      values_bytes_.resize(blocks->most_bytes(kBlock) * blocks_in());
      sum_bytes_.resize(blocks->most_sum_bytes(kBlock) * blocks_in());
    }
  }

  void report(const std::string& text) {
    if (codec_->blocks())
      report_blocks(text);
    else
      report_whole(text);
  }

 private:
  static constexpr std::int64_t kColumns = 1024;

  std::size_t blocks_in() const { return values_.size() / kBlock; }
  std::span<float> block(std::vector<float>& all, std::size_t i) const {
    return std::span(all).subspan(i * kBlock, kBlock);
  }

  // Another gradient in each iteration: with the same one, momentum and residuals would only grow.
  std::size_t other_block(std::size_t i) const {
    return (i + static_cast<std::size_t>(iteration_)) % blocks_in();
  }

  void report_blocks(const std::string& text) {
    BlockCodec& codec = *codec_->blocks();
    std::size_t sent = 0, returned = 0;
    const auto encode = [&] {
      codec.begin(++iteration_);
      sent = 0;
      for (std::size_t i = 0; i < blocks_in(); ++i)
        sent += codec.encode(static_cast<std::int64_t>(i), block(values_, other_block(i)),
                             values_bytes_.data() + sent);
    };
    const auto add = [&] {
      std::span<const std::byte> rest(values_bytes_);
      for (std::size_t i = 0; i < blocks_in(); ++i)
        rest = rest.subspan(codec.add(static_cast<std::int64_t>(i), rest, block(other_, i)));
    };
    const auto encode_sum = [&] {
      returned = 0;
      for (std::size_t i = 0; i < blocks_in(); ++i)
        returned += codec.encode_sum(static_cast<std::int64_t>(i), block(other_, i),
                                     sum_bytes_.data() + returned);
    };
    const auto decode_sum = [&] {
      std::span<const std::byte> rest(sum_bytes_);
      for (std::size_t i = 0; i < blocks_in(); ++i)
        rest = rest.subspan(codec.decode_sum(static_cast<std::int64_t>(i), rest, block(other_, i)));
    };
    const auto seconds =
        medians({[&] { std::ranges::copy(values_, other_.begin()); },
                 [&] { std::ranges::fill(other_, 0.0F); }, encode, add, encode_sum, decode_sum});
    const double n = static_cast<double>(values_.size()), p = workers_;
    // A worker encodes its gradient, adds p parts of 1/p, encodes the sum of 1/p and decodes all.
    const double takes = seconds[2] + seconds[3] + seconds[4] / p + seconds[5];
    print(text, seconds[0], {seconds[2], seconds[3], seconds[4], seconds[5]},
          static_cast<double>(sent) / n, static_cast<double>(returned) / n, takes);
  }

  // PowerSGD: a sum with one worker has all its work.
  void report_whole(const std::string& text) {
    ThreadsNetwork network(1);
    const auto transport = network.transport(0);
    const auto none = make_none();
    Spans spans;
    const auto sum =
        codec_->make_sum({.transport = *transport, .ranks = 1, .compressor = *none, .spans = spans},
                         {.count = std::ssize(values_)});
    const auto seconds = medians({[&] { std::ranges::copy(values_, other_.begin()); },
                                  [&] { sum->sum(std::span(other_)); }});
    const double rank = parse_compression(text)->value;
    const double rows = static_cast<double>(values_.size()) / kColumns;
    // P and Q, each way.
    const double bytes = 4 * rank * (rows + kColumns) / static_cast<double>(values_.size());
    print(text, seconds[0], {seconds[1]}, bytes, bytes, seconds[1]);
  }

  // Sending takes (p-1)/p of the bytes each way. Adding plain values is counted as a copy.
  void print(const std::string& text, double copy, const std::vector<double>& seconds, double sent,
             double returned, double takes) const {
    const double n = static_cast<double>(values_.size()), p = workers_;
    fmt::print("{:14} {:12.1f}", text, 4 * n / copy / 1e9);
    for (std::size_t i = 0; i < 4; ++i)
      fmt::print(" {:>11}", i < seconds.size() ? fmt::format("{:.2f}", copy / seconds[i]) : "-");
    const double saved = (p - 1) / p * (8 - sent - returned) * n;
    fmt::print(" {:9.3f} {:9.3f} {:>12}\n", sent, returned,
               saved <= 0      ? "never"
               : takes <= copy ? "always"
                               : fmt::format("{:.1f} Gbit/s", 8e-9 * saved / (takes - copy)));
  }

  int workers_;
  std::int64_t iteration_ = 1'000'000;  // after any warm-up
  Parameter weight_;
  ParameterSet set_;
  std::vector<float> values_, other_;
  std::unique_ptr<Codec> codec_;
  std::vector<std::byte> values_bytes_, sum_bytes_;
};

}  // namespace

int main(int argc, char** argv) {
  return run_app("bench_compress", [&] {
    CLI::App app(
        "Speed of compressors and codecs relative to memcpy, on one core; of codecs also on a "
        "GPU.");
    std::vector<std::string> codecs;
    app.add_option("codecs", codecs, "only these codecs, such as topk:0.01")
        ->check([](const std::string& text) {
          return parse_compression(text) ? "" : text + " is not a codec";
        });
    std::string device = "cpu";
    app.add_option("--device", device, "cpu, or cuda: codecs on a GPU")
        ->check(CLI::IsMember({"cpu", "cuda"}));
    if (!parse_command_line(app, argc, argv)) return;
    const bool only_codecs = !codecs.empty();
    if (!only_codecs)
      for (const CodecInfo& codec : all_codecs())
        codecs.insert(codecs.end(), codec.examples.begin(), codec.examples.end());
    if (device == "cuda") {
      constexpr std::int64_t kResNet50 = 25'557'032 / 2048 * 2048;  // elements, about
      return report_codecs_on_gpu(codecs, kResNet50);
    }
    if (!only_codecs) {
      fmt::print("f32 bytes per second, relative to memcpy\n");
      fmt::print("{:13} {:>9} {:>12} {:>11} {:>11} {:>9}\n", "", "f32", "memcpy GB/s", "compress",
                 "decompress", "hop");
      for (const std::string& name : compressor_names())
        for (const std::int64_t count : {262'144, 4'194'304, 16'777'216})
          report(*make_compressor(name), count);
    }

    constexpr int kWorkers = 4;
    fmt::print(
        "\ncodecs: f32 bytes per second of 64 MB, relative to memcpy; bytes per element;\n"
        "the bandwidth per worker below which {} workers gain, if one core does the work\n",
        kWorkers);
    fmt::print("{:14} {:>12} {:>11} {:>11} {:>11} {:>11} {:>9} {:>9} {:>12}\n", "", "memcpy GB/s",
               "encode", "add", "encode sum", "decode sum", "sent", "returned", "pays below");
    for (const std::string& text : codecs) CodecBench(text, 16'777'216, kWorkers).report(text);
  });
}
