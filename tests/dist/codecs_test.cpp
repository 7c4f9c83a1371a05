#include "dist/codecs/codec_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dist/codecs/sparse.h"
#include "tests/dist/codecs.h"
#include "tests/dist/gradients.h"

using namespace tandem;
using namespace tandem::test;

namespace {

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
  CHECK(complaint("qsdg:4") == known + "qsdg:4 (did you mean qsgd?)");
  CHECK(complaint("zip") == known + "zip");
  CHECK(complaint("") == known + "empty");
  CHECK(complaint("topk:") ==
        "RATIO of topk:RATIO must be a number above 0 and up to 1, not empty");
  CHECK(complaint("terngrad:2:").starts_with("must be written"));
  CHECK(complaint("dgc:0.1:").ends_with(", not empty"));
  CHECK(complaint("topk") == "topk needs a number; it is written topk:RATIO");
  for (const char* ratio : {"0", "1.5", "-0.1", "nan", "inf", "x", "1e", " 1"})
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
  const CodecNet net;
  CHECK(message_of<UserError>([&] { codec(net, "powersgd:100"); }) ==
        "--compress powersgd:100 gains nothing: no weight matrix of this net is large enough for "
        "rank 100");
}

TEST_CASE("codecs: what is sent and what is left out are the gradients, exactly, for masks") {
  const CodecNet net;
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
  const CodecNet net;
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
  const CodecNet net;
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

TEST_CASE("codecs: a message that is cut off or names a wrong place is refused") {
  const CodecNet net;
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

TEST_CASE("codecs: all workers get the sum of what was sent, the same bits") {
  const CodecNet net;
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
