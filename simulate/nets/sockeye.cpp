// A layer is described by its products, because Tandem has no LSTM.
#include "simulate/nets/nets.h"

namespace tandem {
namespace {

constexpr std::int64_t kWidth = 512;  // of embeddings, hidden states and attention
constexpr std::int64_t kEnglish = 17'191, kVietnamese = 7'709;  // words of IWSLT15's vocabularies
constexpr std::int64_t kLength = 20;                            // words of each sentence

class Translator {
 public:
  // A row per word.
  void embedding(const std::string& name, std::int64_t words) {
    // Forward copies a row per word of the sentence; backward adds as many.
    constexpr double kCopied = kLength * kWidth;
    tensors.push_back({name + ".weight", words * kWidth, kCopied, kCopied});
  }
  // Backward has two products for each of forward: for the input's gradient and the weight's.
  void product(const std::string& name, std::int64_t in, std::int64_t out) {
    const double flop = 2.0 * static_cast<double>(in * out * kLength);
    tensors.push_back({name + "weight", in * out, flop, 2 * flop});
  }
  void bias(const std::string& name, std::int64_t out) {
    const auto flop = static_cast<double>(out * kLength);
    tensors.push_back({name + "bias", out, flop, flop});
  }
  // Four gates read the input and the hidden state.
  void lstm(const std::string& name, std::int64_t in) {
    for (const auto& [part, size] : {std::pair{".i2h_", in}, std::pair{".h2h_", kWidth}}) {
      product(name + part, size, 4 * kWidth);
      bias(name + part, 4 * kWidth);
    }
  }
  // score = v · tanh(query + key) for every pair of words; then the sum of the encoder's states,
  // weighted with the scores.
  void scores(const std::string& name) {
    constexpr double kPairs = kLength * kLength, kScore = 4, kSum = 2;
    const double flop = (kScore + kSum) * kPairs * kWidth;
    tensors.push_back({name + ".weight", kWidth, flop, 2 * flop});
  }

  std::vector<NetTable::Tensor> tensors;
};

}  // namespace

std::vector<NetTable::Tensor> sockeye() {
  Translator t;
  t.embedding("source_embedding", kEnglish);
  t.lstm("encoder.l0", kWidth);
  t.lstm("encoder.l1", kWidth);
  t.product("attention.key.", kWidth, kWidth);
  t.embedding("target_embedding", kVietnamese);
  t.lstm("decoder.l0", 2 * kWidth);  // the word and the last step's combined state
  t.lstm("decoder.l1", kWidth);
  t.product("attention.query.", kWidth, kWidth);
  t.scores("attention.score");
  t.product("decoder.combine.", 2 * kWidth, kWidth);  // the state and what attention has read
  t.bias("decoder.combine.", kWidth);
  t.product("output.", kWidth, kVietnamese);
  t.bias("output.", kVietnamese);
  return t.tensors;
}

}  // namespace tandem
