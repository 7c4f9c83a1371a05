#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "tests/dist/codecs.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("codecs: PowerSGD sums matrices of low rank exactly, up to rounding") {
  const CodecNet net;
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
  const CodecNet net;
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
  const CodecNet net;
  const int p = 3;
  std::vector<std::vector<float>> gradients, residuals(p);
  for (int rank = 0; rank < p; ++rank)
    gradients.push_back(whole_numbers(net, static_cast<std::uint64_t>(rank + 1)));
  const auto sums = summed(net, "powersgd:2", gradients, {.count = net.count()}, &residuals);
  double off = 0;
  for (std::size_t i = 0; i < sums[0].size(); ++i) {
    double all = sums[0][i];
    for (std::size_t rank = 0; rank < p; ++rank) all += residuals[rank][i] - gradients[rank][i];
    off = std::max(off, std::abs(all));
  }
  // Numbers of up to 3,000, each a sum of some 200 products.
  CHECK(off < 200 * 0x1p-24 * 3000 * 200);
}
