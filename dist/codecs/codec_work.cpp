#include "dist/codecs/codec_work.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "dist/codecs/block_codec.h"

namespace tandem {
namespace {

// A weight matrix, because some codecs send vectors plain.
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns)
      : weight({rows, columns}, Parameter::Make()), set({{"weight", &weight}}, cpu_device(1)) {}

  Parameter weight;
  ParameterSet set;
};

std::vector<float> normal_values(std::int64_t count, Random random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

BlockCodec& blocks_of(Codec& codec) {
  require(codec.blocks() != nullptr, "the codec does not encode blocks");
  return *codec.blocks();
}

// A threshold that is estimated from the iteration before is right from the second one on.
constexpr int kRounds = 4;

}  // namespace

CodecWork measure_codec_work(const CodecChoice& choice) {
  constexpr std::int64_t kBlocks = 64;
  Matrix matrix(kBlocks, kBlock);
  const auto codec = choice.info->make(choice, {.parameters = matrix.set, .workers = 4});
  BlockCodec& blocks = blocks_of(*codec);
  std::vector<float> values = normal_values(kBlocks * kBlock, Random(1));
  std::vector<std::byte> encoded(blocks.most_bytes(kBlock)), sum(blocks.most_sum_bytes(kBlock));
  CodecWork work;
  for (int round = 0; round < kRounds; ++round) {
    codec->begin(-round);
    work = {};
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      const auto v = std::span(values).subspan(static_cast<std::size_t>(b * kBlock), kBlock);
      std::vector<float> added(v.size());
      const auto time = [](double& seconds, const auto& call) {
        const auto begin = Clock::now();
        call();
        seconds += seconds_between(begin, Clock::now()) / (kBlocks * kBlock);
      };
      time(work.encode, [&] { blocks.encode(b, v, encoded.data()); });
      time(work.add, [&] { blocks.add(b, encoded, added); });
      time(work.encode_sum, [&] { blocks.encode_sum(b, added, sum.data()); });
      time(work.decode_sum, [&] { blocks.decode_sum(b, sum, added); });
    }
  }
  return work;
}

EncodedSizes sizes_of_block(const CodecChoice& choice, int workers, std::int64_t count) {
  Matrix matrix(1, count);
  std::vector<float> sum(static_cast<std::size_t>(count));
  EncodedSizes sizes;
  for (int rank = 0; rank < workers; ++rank) {
    const auto codec = choice.info->make(
        choice,
        {.parameters = matrix.set, .workers = workers, .rank = rank, .error_feedback = false});
    BlockCodec& blocks = blocks_of(*codec);
    std::vector<std::byte> encoded(blocks.most_bytes(count));
    std::size_t bytes = 0;
    for (int round = 0; round < kRounds; ++round) {
      codec->begin(-round);
      const Random random = Random(1).split(static_cast<std::uint64_t>(rank * kRounds + round));
      bytes = blocks.encode(0, normal_values(count, random), encoded.data());
    }
    sizes.sent += bytes;
    blocks.add(0, std::span(encoded).first(bytes), sum);
    if (rank + 1 < workers) continue;
    encoded.resize(blocks.most_sum_bytes(count));
    sizes.returned = blocks.encode_sum(0, sum, encoded.data());
  }
  const auto p = static_cast<std::size_t>(workers);
  sizes.sent = (sizes.sent + p - 1) / p;
  return sizes;
}

}  // namespace tandem
