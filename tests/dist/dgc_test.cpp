#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/dist/codecs.h"
#include "tests/dist/conformance.h"

using namespace tandem;
using namespace tandem::test;

// Thresholds come from the iteration before, so the numbers are right only in the mean.
TEST_CASE("codecs: DGC sends more in its first epochs, and tensors of one dimension whole") {
  const CodecNet net;
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
  const CodecNet net;
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
  const CodecNet net;
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

TEST_CASE("codecs: SSP gives its own copy the momentum that DGC gives the servers") {
  // The worker's weights in each iteration. It never pulls, so they come from its own copy.
  const auto weights = [](Job job) {
    Weights seen;
    job.meddle = [&](Net& net, int, std::int64_t) { seen.push_back(weights_of(net)); };
    run(job);
    return seen;
  };
  const Weights expected = weights({.algo = &strategy_named("single"), .count = 13});
  REQUIRE(std::ssize(expected) == kIterations);
  CHECK(same(weights({.algo = &strategy_named("ssp"),
                      .options = {{"--staleness", kIterations}},
                      .compress = "dgc:0.1",
                      .count = 13}),
             expected));
}
