#include "dist/codecs/codec_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/levels.h"
#include "dist/codecs/sparse.h"
#include "tests/dist/gradients.h"
#include "tests/dist/ranks.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// A bias, two matrices and another bias: 9 blocks, of which the last is short.
struct Net {
  Parameter a{{70}, std::vector<float>(70)}, b{{60, 100}, std::vector<float>(6000)},
      c{{50, 4, 50}, std::vector<float>(10000)}, d{{600}, std::vector<float>(600)};
  ParameterSet set{{{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}}, cpu_device(1)};

  std::int64_t count() const { return set.values().count(); }
  std::int64_t blocks() const { return parts(count(), kBlock); }
};

std::unique_ptr<Codec> codec(const std::string& text, const CodecContext& context) {
  const auto choice = parse_compression(text);
  REQUIRE(choice.has_value());
  return choice->info->make(*choice, context);
}
std::unique_ptr<Codec> codec(const Net& net, const std::string& text, int workers = 1,
                             int rank = 0) {
  return codec(text, {.parameters = net.set, .workers = workers, .rank = rank});
}

// Whole numbers, so that sums of a few are exact. The padding between tensors is 0.
std::vector<float> whole_numbers(const Net& net, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(net.count()));
  Random random(seed);
  for (const Parameter* p : net.set.trained())
    for (std::int64_t i = p->offset; i < p->offset + p->shape.count(); ++i)
      values[static_cast<std::size_t>(i)] = static_cast<float>(random.below(2001)) - 1000;
  return values;
}

template <class T>
std::span<T> block_of(std::vector<T>& all, std::int64_t block) {
  const auto first = static_cast<std::size_t>(block * kBlock);
  return std::span(all).subspan(first,
                                std::min(static_cast<std::size_t>(kBlock), all.size() - first));
}

// What a worker with this gradient sends.
std::vector<float> sent(BlockCodec& codec, std::int64_t t, std::vector<float> gradient) {
  codec.begin(t);
  const std::int64_t blocks = parts(std::ssize(gradient), kBlock);
  if (codec.needs_norm()) {
    double squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * g;
    codec.set_norm(std::sqrt(squares));
  }
  std::vector<float> all(gradient.size());
  for (std::int64_t b = 0; b < blocks; ++b) {
    const auto values = block_of(gradient, b);
    std::vector<std::byte> bytes(codec.most_bytes(std::ssize(values)));
    const std::size_t used = codec.encode(b, values, bytes.data());
    CHECK(used <= bytes.size());
    CHECK(codec.add(b, bytes, block_of(all, b)) == used);
  }
  return all;
}

std::vector<float> saved_tensor(Codec& codec, const std::string& name) {
  Snapshot snapshot;
  snapshot.save(codec);
  const auto bytes = snapshot.items().at(name).data();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string complaint(const std::string& text) {
  return message_of<UserError>([&] { parse_compression(text); });
}

}  // namespace

TEST_CASE("codecs: --compress names a compressor of the ring or a codec with its numbers") {
  for (const char* name : {"none", "trunc16", "quant8"}) {
    CHECK(!parse_compression(name));
    CHECK(compressor_in_ring(name) == name);
  }
  CHECK(parse_compression("topk:0.01")->value == 0.01);
  CHECK(parse_compression("dgc")->value == 0.001);
  CHECK(parse_compression("dgc:0.25:2")->second == 2);
  CHECK(parse_compression("qsgd:8")->info->name == "qsgd");
  CHECK(compressor_in_ring("powersgd:4") == "none");

  const std::string known =
      "must be one of none, trunc16, quant8, terngrad-ring, terngrad[:CLIP], qsgd:BITS, onebit, "
      "topk:RATIO, randomk:RATIO, dgc[:RATIO[:CLIP]], powersgd:RANK, auto[:LIST], not ";
  CHECK(complaint("topkk:0.1") == known + "topkk:0.1 (did you mean topk?)");
  CHECK(complaint("zip") == known + "zip");
  CHECK(complaint("") == known + "empty");
  CHECK(complaint("topk") == "topk needs a number; it is written topk:RATIO");
  for (const char* ratio : {"0", "1.5", "-0.1", "nan", "inf", "", "x", "1e", " 1"})
    CHECK(complaint(fmt::format("topk:{}", ratio)) ==
          fmt::format("RATIO of topk:RATIO must be a number above 0 and up to 1, not "
                      "{}",
                      ratio));
  for (const char* bits : {"1", "9", "2.5"})
    CHECK(complaint(fmt::format("qsgd:{}", bits)) ==
          fmt::format("BITS of qsgd:BITS must be a whole number from 2 to 8, not "
                      "{}",
                      bits));
  CHECK(complaint("powersgd:0") ==
        "RANK of powersgd:RANK must be a whole number from 1 to 1024, not 0");
  CHECK(complaint("onebit:2") == "must be written onebit, not onebit:2");
  CHECK(complaint("dgc:0.1:-1") ==
        "CLIP of dgc[:RATIO[:CLIP]] must be a number of 0 or more, not -1");
  CHECK(compressions_to_try("quant8").empty());
  CHECK(compressions_to_try("auto") == std::vector<std::string>{"none", "trunc16", "quant8"});
  CHECK(compressions_to_try("auto:none,topk:0.1") == std::vector<std::string>{"none", "topk:0.1"});
  CHECK(message_of<UserError>([] { compressions_to_try("auto:none,qsgd"); }) ==
        "qsgd needs a number; it is written qsgd:BITS");
  const Net net;
  CHECK(message_of<UserError>([&] { codec(net, "powersgd:100"); }) ==
        "--compress powersgd:100 gains nothing: no weight matrix of this net is large enough for "
        "rank 100");
}

TEST_CASE("codecs: what is sent and what is left out are the gradients, exactly, for masks") {
  const Net net;
  for (const char* text : {"topk:0.01", "topk:0.3", "topk:1", "randomk:0.1", "dgc:0.05"}) {
    CAPTURE(text);
    const auto made = codec(net, text);
    std::vector<double> gradients(static_cast<std::size_t>(net.count())), sums(gradients.size());
    for (std::int64_t t = 1; t <= 30; ++t) {
      const auto gradient = whole_numbers(net, static_cast<std::uint64_t>(t));
      const auto now = sent(*made->blocks(), t, gradient);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        gradients[i] += gradient[i];
        sums[i] += now[i];
      }
    }
    const auto residual = saved_tensor(*made, "residual");
    for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(sums[i] + residual[i] == gradients[i]);
  }
}

TEST_CASE("codecs: what onebit sends and leaves out are the gradients, to rounding") {
  const Net net;
  const auto made = codec(net, "onebit");
  std::vector<double> gradients(static_cast<std::size_t>(net.count())), sums(gradients.size());
  constexpr int kIterations = 30;
  for (std::int64_t t = 1; t <= kIterations; ++t) {
    const auto gradient = whole_numbers(net, static_cast<std::uint64_t>(t));
    const auto now = sent(*made->blocks(), t, gradient);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      gradients[i] += gradient[i];
      sums[i] += now[i];
    }
  }
  // An iteration rounds two sums. The residual stays below 1000 per iteration.
  const double rounding = 2 * kIterations * 0x1p-24 * 1000 * kIterations;
  const auto residual = saved_tensor(*made, "residual");
  for (std::size_t i = 0; i < sums.size(); ++i)
    REQUIRE(std::abs(sums[i] + residual[i] - gradients[i]) <= rounding);
}

TEST_CASE("codecs: without error feedback, what is left out is forgotten") {
  const Net net;
  for (const char* text : {"topk:0.01", "randomk:0.01", "onebit"}) {
    const auto made = codec(text, {.parameters = net.set, .error_feedback = false});
    const auto gradient = whole_numbers(net, 1);
    const auto other = codec(text, {.parameters = net.set, .error_feedback = false});
    sent(*made->blocks(), 1, whole_numbers(net, 2));
    CHECK(sent(*made->blocks(), 2, gradient) == sent(*other->blocks(), 2, gradient));
  }
  // DGC remembers its velocity and its thresholds.
  const auto dgc = codec("dgc:0.01", {.parameters = net.set, .error_feedback = false});
  for (const std::int64_t t : {1, 2, 3}) sent(*dgc->blocks(), t, whole_numbers(net, 3));
  CHECK(std::ranges::count(saved_tensor(*dgc, "residual"), 0.0F) == net.count());
}

// The mean of n roundings of v has this standard deviation: a rounding goes up or down by a part of
// a step.
TEST_CASE("codecs: QSGD and TernGrad without clipping are right in the mean") {
  const Net net;
  std::vector<float> values = whole_numbers(net, 5);
  values.resize(static_cast<std::size_t>(kBlock));
  const double largest =
      std::abs(*std::ranges::max_element(values, {}, [](float v) { return std::abs(v); }));
  for (const auto& [text, levels] : std::vector<std::pair<std::string, int>>{
           {"terngrad:0", 1}, {"qsgd:2", 1}, {"qsgd:3", 3}, {"qsgd:5", 15}, {"qsgd:8", 127}}) {
    CAPTURE(text);
    const auto made = codec(net, text);
    constexpr int kRounds = 2000;
    std::vector<double> sums(values.size());
    for (int round = 1; round <= kRounds; ++round) {
      const auto now = sent(*made->blocks(), round, values);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += now[i];
    }
    const double step = largest / levels;
    double squares = 0, worst = 0;
    std::size_t rounded = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double part = std::abs(values[i]) / step - std::floor(std::abs(values[i]) / step);
      const double deviation = step * std::sqrt(part * (1 - part) / kRounds);
      const double off = std::abs(sums[i] / kRounds - values[i]);
      if (part < 0.01 || part > 0.99) continue;  // hardly ever rounded the other way
      ++rounded;
      squares += off * off / (deviation * deviation);
      worst = std::max(worst, off / deviation);
    }
    // 2,000 normal numbers exceed 5.5 with a probability of 1e-4, and the mean of their squares is
    // within 1 ± 5·√(2/n).
    CHECK(worst < 5.5);
    const auto n = static_cast<double>(rounded);
    CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
  }
}

TEST_CASE("codecs: levels are kept as they are, by every width and in blocks of any length") {
  Random random(6);
  for (int bits = 2; bits <= 8; ++bits)
    for (const std::size_t n : {1, 7, 8, 9, 100, 1023, 1025, 2047, 2048}) {
      CAPTURE(bits);
      CAPTURE(n);
      const int levels = (1 << (bits - 1)) - 1;
      std::vector<float> values(n), decoded(n, 1);
      for (float& v : values)
        v = static_cast<float>(random.below(static_cast<std::uint64_t>(2 * levels + 1))) -
            static_cast<float>(levels);
      values[n / 2] = static_cast<float>(-levels);
      std::vector<std::byte> bytes(level_bytes(bits, static_cast<std::int64_t>(n)));
      CHECK(encode_levels(bits, values, random.key(), 0, bytes.data()) == bytes.size());
      CHECK(decode_levels(bits, bytes, decoded) == bytes.size());
      CHECK(decoded == values);
    }
}

TEST_CASE("codecs: a block with NaN or infinity is decoded as NaN") {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(100, 1), decoded(100);
    values[50] = wrong;
    std::vector<std::byte> bytes(level_bytes(4, 100));
    encode_levels(4, values, 1, 0, bytes.data());
    decode_levels(4, bytes, decoded);
    CHECK(std::ranges::all_of(decoded, [](float v) { return std::isnan(v); }));
  }
}

TEST_CASE("codecs: TernGrad cuts magnitudes above a number of standard deviations") {
  const Net net;
  std::vector<float> values(static_cast<std::size_t>(kBlock), 1);
  values[7] = 1000;  // the standard deviation is 22.1
  const auto made = codec(net, "terngrad:2.5");
  const auto now = sent(*made->blocks(), 1, values);
  const double deviation = std::sqrt((1e6 + 2047) / 2048);
  CHECK(now[7] == doctest::Approx(2.5 * deviation).epsilon(1e-5));
}

TEST_CASE("codecs: workers round differently, and each the same in every run") {
  const Net net;
  const auto gradient = whole_numbers(net, 3);
  const auto by = [&](int rank, std::int64_t t) {
    return sent(*codec(net, "qsgd:2", 2, rank)->blocks(), t, gradient);
  };
  CHECK(by(0, 1) == by(0, 1));
  CHECK(by(0, 1) != by(1, 1));
  CHECK(by(0, 1) != by(0, 2));
}

TEST_CASE("codecs: the largest elements are chosen; of equal ones, the first") {
  Random random(3);
  for (const std::size_t n : {1, 2, 100, 2048})
    for (const std::uint64_t different : {1, 2, 50, 1'000'000})
      for (const std::size_t k : {std::size_t{1}, n / 10 + 1, n}) {
        std::vector<float> values(n);
        for (float& v : values)
          v = (random.below(2) ? 1e-3F : -1e-3F) * static_cast<float>(random.below(different));
        std::vector<std::uint16_t> expected(n);
        std::iota(expected.begin(), expected.end(), std::uint16_t{0});
        std::ranges::stable_sort(expected, std::greater<>(),
                                 [&](std::uint16_t i) { return std::abs(values[i]); });
        expected.resize(k);
        std::ranges::sort(expected);
        Chosen chosen;
        choose_largest(values, k, chosen);
        CHECK(std::ranges::equal(chosen.all(), expected));
      }
}

TEST_CASE("codecs: top-k and DGC send NaN at once, so that it is noticed, and forget it") {
  const Net net;
  for (const char* text : {"topk:0.01", "dgc:0.01"}) {
    CAPTURE(text);
    const auto made = codec(text, {.parameters = net.set, .momentum = 0.9});
    for (std::int64_t t = 1; t <= 6; ++t) {
      auto gradient = whole_numbers(net, static_cast<std::uint64_t>(t));
      const auto wrong = static_cast<std::size_t>(net.b.offset + 10);
      if (t == 4) gradient[wrong] = std::numeric_limits<float>::quiet_NaN();
      const auto now = sent(*made->blocks(), t, gradient);
      CHECK(std::isnan(now[wrong]) == (t == 4));
      CHECK(std::ranges::count_if(now, [](float v) { return std::isnan(v); }) == (t == 4 ? 1 : 0));
    }
  }
}

TEST_CASE("codecs: sparse blocks are decoded as they were, whole if that is shorter") {
  std::vector<float> values(2048), decoded(2048);
  std::vector<std::byte> bytes(most_sparse_bytes(2048, 2048));
  for (const std::size_t many : {0, 1, 100, 1364, 1366, 2048}) {
    std::ranges::fill(values, 0.0F);
    for (std::size_t i = 0; i < many; ++i) values[(i * 37) % 2048] = static_cast<float>(i + 1);
    const std::size_t used = encode_sparse(values, bytes.data());
    CHECK(used == 2 + std::min<std::size_t>(6 * many, 8192));
    CHECK(decode_sparse(bytes, decoded) == used);
    CHECK(decoded == values);
  }
}

TEST_CASE("codecs: a message that is cut off or names a wrong place is refused") {
  const Net net;
  std::vector<float> values = whole_numbers(net, 4), sum(static_cast<std::size_t>(kBlock));
  values.resize(sum.size());
  for (const char* text :
       {"terngrad", "qsgd:4", "onebit", "topk:0.01", "randomk:0.01", "dgc:0.01"}) {
    CAPTURE(text);
    const auto made = codec(net, text);
    BlockCodec& blocks = *made->blocks();
    blocks.begin(1);
    std::vector<std::byte> bytes(blocks.most_bytes(kBlock));
    bytes.resize(blocks.encode(0, values, bytes.data()) - 1);
    CHECK_THROWS_AS(blocks.add(0, bytes, sum), std::logic_error);
    CHECK_THROWS_AS(blocks.add(0, std::span(bytes).first(0), sum), std::logic_error);
  }
  const std::uint16_t one_at_2000[] = {1, 2000, 0, 0};
  CHECK_THROWS_AS(add_sparse(std::as_bytes(std::span(one_at_2000)), std::span(sum).first(2000)),
                  std::logic_error);
}

// Thresholds come from the iteration before, so the numbers are right only in the mean.
TEST_CASE("codecs: DGC sends more in its first epochs, and tensors of one dimension whole") {
  const Net net;
  constexpr std::int64_t kEpoch = 100;
  const auto made =
      codec("dgc:0.001", {.parameters = net.set, .momentum = 0.9, .iterations_per_epoch = kEpoch});
  CHECK(made->plain_elements() == 670);
  std::int64_t t = 0;
  for (const double ratio : {0.251, 0.063, 0.0158, 0.004, 0.001, 0.001}) {
    CAPTURE(ratio);
    double many = 0;
    for (std::int64_t i = 1; i <= kEpoch; ++i) {
      ++t;
      const auto now = sent(*made->blocks(), t, whole_numbers(net, static_cast<std::uint64_t>(t)));
      const auto sent_of = [&](const Parameter& p) {
        return std::ranges::count_if(
            std::span(now).subspan(static_cast<std::size_t>(p.offset),
                                   static_cast<std::size_t>(p.shape.count())),
            [](float v) { return v != 0; });
      };
      if (t == 1) CHECK(sent_of(net.b) >= 5990);  // everything but zeros
      CHECK(sent_of(net.d) >= 590);
      if (i > kEpoch / 2) many += static_cast<double>(sent_of(net.b) + sent_of(net.c));
    }
    const double expected = ratio * 16000 * kEpoch / 2;
    CHECK(many > expected / 1.5);
    CHECK(many < 1.5 * expected);
  }
}

TEST_CASE("codecs: DGC's momentum is that of SGD, if everything is sent") {
  const Net net;
  for (const bool nesterov : {false, true}) {
    const auto made =
        codec("dgc:1", {.parameters = net.set, .momentum = 0.5, .nesterov = nesterov});
    std::vector<float> velocity(static_cast<std::size_t>(net.count()));
    std::vector<float> biases;
    for (std::int64_t t = 1; t <= 5; ++t) {
      const auto gradient = whole_numbers(net, static_cast<std::uint64_t>(t));
      const auto now = sent(*made->blocks(), t, gradient);
      // Tensors that are sent whole keep their velocity; of the others, it is sent and forgotten.
      for (std::int64_t i = net.d.offset; i < net.d.offset + 600; ++i) {
        const auto at = static_cast<std::size_t>(i);
        velocity[at] = 0.5F * velocity[at] + gradient[at];
        REQUIRE(now[at] == (nesterov ? 0.5F * velocity[at] + gradient[at] : velocity[at]));
      }
      for (std::int64_t i = net.b.offset; i < net.b.offset + 6000; ++i) {
        const auto at = static_cast<std::size_t>(i);
        REQUIRE(now[at] == (nesterov ? 1.5F : 1.0F) * gradient[at]);
      }
    }
  }
}

TEST_CASE("codecs: DGC scales a gradient down whose norm is too large") {
  const Net net;
  const auto gradient = whole_numbers(net, 1);
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * g;
  const auto made = codec(net, "dgc:1:10", 4);  // 10/√4 = 5
  const auto now = sent(*made->blocks(), 1, gradient);
  double after = 0;
  for (const float v : now) after += static_cast<double>(v) * v;
  CHECK(std::sqrt(after) == doctest::Approx(5).epsilon(1e-5));
  const auto mild = codec(net, fmt::format("dgc:1:{}", 3 * std::sqrt(squares)), 4);
  CHECK(sent(*mild->blocks(), 1, gradient) == gradient);
}

namespace {

// Sums gradients of p workers, and returns what each worker gets.
std::vector<std::vector<float>> summed(const Net& net, const std::string& text,
                                       const std::vector<std::vector<float>>& gradients,
                                       const BlockRange& range, int iterations = 1,
                                       std::vector<std::vector<float>>* residuals = nullptr) {
  const auto p = static_cast<int>(gradients.size());
  auto sums = gradients;
  const auto none = make_none();
  on_ranks(p, [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    Spans spans;
    const auto made = codec(net, text, p, transport.rank());
    const auto sum = made->make_sum(
        {.transport = transport, .ranks = p, .compressor = *none, .spans = spans}, range);
    for (int t = 1; t <= iterations; ++t) {
      sums[rank] = gradients[rank];
      made->begin(t);
      sum->sum(std::span(sums[rank]));
    }
    if (residuals) (*residuals)[rank] = saved_tensor(*made, "residual");
  });
  return sums;
}

}  // namespace

TEST_CASE("codecs: all workers get the sum of what was sent, the same bits") {
  const Net net;
  for (const int p : {1, 2, 3, 5})
    for (const char* text :
         {"topk:0.02", "randomk:0.05", "dgc:0.02", "qsgd:8", "terngrad", "onebit", "powersgd:2"})
      for (const BlockRange range :
           {BlockRange{.count = net.count()}, BlockRange{.count = 3 * kBlock, .first_block = 2}}) {
        CAPTURE(text);
        CAPTURE(p);
        std::vector<std::vector<float>> gradients;
        std::vector<double> expected(static_cast<std::size_t>(range.count));
        for (int rank = 0; rank < p; ++rank) {
          const auto whole = whole_numbers(net, static_cast<std::uint64_t>(rank + 1));
          gradients.emplace_back(whole.begin() + range.first(),
                                 whole.begin() + range.first() + range.count);
          if (std::string(text).starts_with("topk") || std::string(text).starts_with("randomk")) {
            std::vector<float> placed(whole.size());
            std::ranges::copy(gradients.back(), placed.begin() + range.first());
            const auto now = sent(*codec(net, text, p, rank)->blocks(), 1, placed);
            for (std::size_t i = 0; i < expected.size(); ++i)
              expected[i] += now[static_cast<std::size_t>(range.first()) + i];
          }
        }
        const auto sums = summed(net, text, gradients, range);
        for (const auto& sum : sums) CHECK(same_bits(sum, sums[0]));
        if (std::string(text).starts_with("topk") || std::string(text).starts_with("randomk"))
          CHECK(std::ranges::equal(sums[0], expected));  // whole numbers: exact
      }
}

TEST_CASE("codecs: PowerSGD sums matrices of low rank exactly, up to rounding") {
  const Net net;
  const int p = 3;
  std::vector<std::vector<float>> gradients;
  std::vector<double> expected(static_cast<std::size_t>(net.count()));
  Random random(8);
  std::vector<float> column(60), row(100);
  for (float& x : column) x = static_cast<float>(random.normal());
  for (float& x : row) x = static_cast<float>(random.normal());
  for (int rank = 0; rank < p; ++rank) {
    std::vector<float> gradient(expected.size());
    for (std::size_t i = 0; i < 60; ++i)
      for (std::size_t j = 0; j < 100; ++j)
        gradient[static_cast<std::size_t>(net.b.offset) + i * 100 + j] =
            static_cast<float>(rank + 1) * column[i] * row[j];
    for (std::size_t i = 0; i < 600; ++i)
      gradient[static_cast<std::size_t>(net.d.offset) + i] = static_cast<float>(i);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += gradient[i];
    gradients.push_back(std::move(gradient));
  }
  const auto sums = summed(net, "powersgd:1", gradients, {.count = net.count()});
  double off = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    off = std::max(off, std::abs(sums[0][i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  CHECK(off < 1e-5 * size);
  CHECK(codec(net, "powersgd:1")->plain_elements() == net.count() - 16000);
}

// A row at a cut was encoded before and is plain now.
TEST_CASE("codecs: PowerSGD sends what it has left out, also if messages are cut differently") {
  const Net net;
  const auto made = codec(net, "powersgd:2");
  const auto none = make_none();
  std::vector<double> gradients(static_cast<std::size_t>(net.count())), sums(gradients.size());
  on_ranks(1, [&](Transport& transport) {
    Spans spans;
    const AllReduce::Group group{
        .transport = transport, .ranks = 1, .compressor = *none, .spans = spans};
    const std::int64_t cut = 3 * kBlock;
    const auto all = made->make_sum(group, {.count = net.count()});
    const auto low = made->make_sum(group, {.count = cut});
    const auto high = made->make_sum(group, {.count = net.count() - cut, .first_block = 3});
    for (std::int64_t t = 1; t <= 300; ++t) {
      made->begin(t);
      std::vector<float> values(sums.size());
      if (t <= 5) values = whole_numbers(net, static_cast<std::uint64_t>(t));
      for (std::size_t i = 0; i < sums.size(); ++i) gradients[i] += values[i];
      if (t <= 5) {
        all->sum(std::span(values));
      } else {
        low->sum(std::span(values).first(static_cast<std::size_t>(cut)));
        high->sum(std::span(values).subspan(static_cast<std::size_t>(cut)));
      }
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
  });
  double off = 0, size = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    off = std::max(off, std::abs(sums[i] - gradients[i]));
    size = std::max(size, std::abs(gradients[i]));
  }
  CHECK(off < 1e-3 * size);
}

// Of each worker: what it sends of its own is the sum of its gradients less its residual. The sums
// that all get are the sums of that, rounded.
TEST_CASE("codecs: what PowerSGD sends and leaves out are the gradients, to rounding") {
  const Net net;
  const int p = 3;
  std::vector<std::vector<float>> gradients, residuals(p);
  for (int rank = 0; rank < p; ++rank)
    gradients.push_back(whole_numbers(net, static_cast<std::uint64_t>(rank + 1)));
  const auto sums = summed(net, "powersgd:2", gradients, {.count = net.count()}, 1, &residuals);
  double off = 0;
  for (std::size_t i = 0; i < sums[0].size(); ++i) {
    double all = sums[0][i];
    for (std::size_t rank = 0; rank < p; ++rank) all += residuals[rank][i] - gradients[rank][i];
    off = std::max(off, std::abs(all));
  }
  // Numbers of up to 3,000, each a sum of some 200 products.
  CHECK(off < 200 * 0x1p-24 * 3000 * 200);
}
