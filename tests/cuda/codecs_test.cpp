// Codecs on a GPU: the same messages, sums and residuals as on the host.
#include "dist/codecs/codec_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/host_staging.h"
#include "tests/cuda/compare.h"
#include "tests/dist/gradients.h"
#include "tests/dist/ranks.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Biases, two matrices and padding between them: 160 blocks, of which the last is short. A share of
// three workers takes one stretch of messages, and of one worker three.
struct Net {
  explicit Net(const Device& device) : set({{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}}, device) {}
  Parameter a{{70}, std::vector<float>(70)}, b{{60, 100}, std::vector<float>(6000)},
      c{{400, 8, 100}, std::vector<float>(320'000)}, d{{601}, std::vector<float>(601)};
  ParameterSet set;
};

// Each worker has its own numbers. Many are equal, and many are tiny.
std::vector<float> gradient(const ParameterSet& set, int rank, int t) {
  std::vector<float> values(static_cast<std::size_t>(set.values().count()));
  Random random(static_cast<std::uint64_t>(100 * rank + t));
  for (const Parameter* p : set.trained())
    for (std::int64_t i = p->offset; i < p->offset + p->shape.count(); ++i)
      values[static_cast<std::size_t>(i)] =
          random.below(4) == 0
              ? static_cast<float>(random.below(9)) - 4
              : static_cast<float>(random.normal() * std::pow(10.0, random.uniform(-6, 0)));
  return values;
}

struct Outcome {
  std::vector<float> sum;
  std::map<std::string, std::vector<std::byte>> state;
};

// What a worker gets in the last iteration. Every iteration sums two ranges.
Outcome train(const std::string& text, Transport& transport, int workers, int iterations,
              const Device& device, bool encodes, bool error_feedback, bool nesterov) {
  const Net net(device);
  const auto choice = parse_compression(text);
  const auto codec = choice->info->make(*choice, {.parameters = net.set,
                                                  .workers = workers,
                                                  .rank = transport.rank(),
                                                  .error_feedback = error_feedback,
                                                  .momentum = 0.9,
                                                  .nesterov = nesterov,
                                                  .iterations_per_epoch = 1,
                                                  .device = encodes ? device : cpu_device(1)});
  CHECK(codec->on_device() == encodes);
  const auto none = make_none();
  Spans spans;
  const std::int64_t count = net.set.values().count();
  const std::vector<BlockRange> ranges = {{.count = 7 * kBlock},
                                          {.count = count - 7 * kBlock, .first_block = 7}};
  std::vector<std::unique_ptr<AllReduce>> sums;
  std::vector<std::unique_ptr<Staging>> stagings;
  for (const BlockRange& range : ranges) {
    sums.push_back(codec->make_sum(
        {.transport = transport, .ranks = workers, .compressor = *none, .spans = spans}, range));
    auto staging = sums.back()->make_staging();
    CHECK((staging != nullptr) == encodes);
    if (!staging) staging = make_staging(device, *none, range.count, spans);
    stagings.push_back(std::move(staging));
  }
  Outcome outcome;
  for (int t = 1; t <= iterations; ++t) {
    const std::vector<float> values = gradient(net.set, transport.rank(), t);
    outcome.sum.clear();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const auto first = values.begin() + ranges[i].first();
      const Tensor part = Tensor::from(std::vector<float>(first, first + ranges[i].count),
                                       {ranges[i].count}, device);
      stagings[i]->begin(part, device.backend().record_event(), sums[i]->segments(),
                         Staging::Fill::from_values);
      CHECK(stagings[i]->finite());
      codec->begin(t);
      sums[i]->sum(*stagings[i]);
      device.backend().wait_for(stagings[i]->finish());
      const std::vector<float> sum = part.to_host<float>();
      outcome.sum.insert(outcome.sum.end(), sum.begin(), sum.end());
    }
    if (t == iterations - 1) {  // as if it had stopped and resumed
      Snapshot snapshot;
      snapshot.save(*codec);
      snapshot.wait();
      snapshot.load(*codec);
    }
  }
  Snapshot snapshot;
  snapshot.save(*codec);
  snapshot.wait();
  for (const auto& [name, item] : snapshot.items())
    outcome.state[name].assign(item.data().begin(), item.data().end());
  return outcome;
}

// By worker, encoded on the host and on the GPU.
struct Outcomes {
  std::vector<Outcome> host, gpu;
};

Outcomes both_ways(const std::string& text, int workers, int iterations, bool error_feedback,
                   bool nesterov) {
  Outcomes all{.host = std::vector<Outcome>(static_cast<std::size_t>(workers)),
               .gpu = std::vector<Outcome>(static_cast<std::size_t>(workers))};
  for (const bool encodes : {false, true})
    on_ranks(workers, [&](Transport& transport) {
      const Device device = cuda_device({});
      (encodes ? all.gpu : all.host)[static_cast<std::size_t>(transport.rank())] =
          train(text, transport, workers, iterations, device, encodes, error_feedback, nesterov);
    });
  return all;
}

std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Of the norms.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    all += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / all);
}

}  // namespace

TEST_CASE("cuda: codecs: a GPU sums to the host's bits and remembers the same") {
  for (const char* text : {"terngrad", "terngrad:2.5", "qsgd:2", "qsgd:3", "qsgd:4", "qsgd:5",
                           "qsgd:6", "qsgd:7", "qsgd:8", "onebit", "topk:0.01", "topk:0.9",
                           "randomk:0.01", "randomk:0.3", "dgc:0.02", "dgc:0.5"})
    for (const int workers : {1, 3})
      for (const bool error_feedback : {true, false}) {
        CAPTURE(text);
        CAPTURE(workers);
        CAPTURE(error_feedback);
        const auto [host, gpu] = both_ways(text, workers, 7, error_feedback, !error_feedback);
        for (std::size_t rank = 0; rank < host.size(); ++rank) {
          CAPTURE(rank);
          CHECK(same_bits(host[rank].sum, gpu[rank].sum));
          CHECK(same_bits(gpu[rank].sum, gpu[0].sum));
          REQUIRE(host[rank].state.size() == gpu[rank].state.size());
          for (const auto& [name, bytes] : host[rank].state) {
            CAPTURE(name);
            CHECK(bytes == gpu[rank].state.at(name));
          }
        }
      }
}

TEST_CASE("cuda: codecs: PowerSGD on a GPU differs from the host's by rounding") {
  for (const char* text : {"powersgd:1", "powersgd:2", "powersgd:4", "powersgd:7"})
    for (const int workers : {1, 3})
      for (const bool error_feedback : {true, false}) {
        CAPTURE(text);
        CAPTURE(workers);
        CAPTURE(error_feedback);
        const auto [host, gpu] = both_ways(text, workers, 3, error_feedback, false);
        for (std::size_t rank = 0; rank < host.size(); ++rank) {
          CHECK(same_bits(gpu[rank].sum, gpu[0].sum));
          CHECK(relative_difference(gpu[rank].sum, host[rank].sum) < 1e-4);
          REQUIRE(host[rank].state.size() == gpu[rank].state.size());
          if (error_feedback)
            CHECK(relative_difference(as_floats(gpu[rank].state.at("residual")),
                                      as_floats(host[rank].state.at("residual"))) < 1e-4);
        }
      }
}

TEST_CASE("cuda: codecs: a value that is not finite is noticed before it is encoded") {
  const Device device = cuda_device({});
  const Net net(device);
  const auto choice = parse_compression("qsgd:4");
  const auto codec = choice->info->make(*choice, {.parameters = net.set, .device = device});
  on_ranks(1, [&](Transport& transport) {
    const auto none = make_none();
    Spans spans;
    const std::int64_t count = net.set.values().count();
    const auto sum =
        codec->make_sum({.transport = transport, .ranks = 1, .compressor = *none, .spans = spans},
                        {.count = count});
    const auto staging = sum->make_staging();
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
      values[values.size() / 2] = bad;
      const Tensor tensor = Tensor::from(values, {count}, device);
      staging->begin(tensor, device.backend().record_event(), sum->segments(),
                     Staging::Fill::from_values);
      CHECK(!staging->finite());
      CHECK(same_bits(staging->values(), values));
    }
  });
}
