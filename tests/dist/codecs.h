// Runs codecs without a net that trains: a few parameters, their blocks, and what a worker sends.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_table.h"
#include "tests/dist/ranks.h"
#include "tests/support.h"

namespace tandem::test {

// A bias, two matrices and another bias: 9 blocks, of which the last is short.
struct CodecNet {
  Parameter a{{70}, std::vector<float>(70)}, b{{60, 100}, std::vector<float>(6000)},
      c{{50, 4, 50}, std::vector<float>(10000)}, d{{600}, std::vector<float>(600)};
  ParameterSet set{{{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}}, cpu_device(1)};

  std::int64_t count() const { return set.values().count(); }
};

inline std::unique_ptr<Codec> codec(const std::string& text, const CodecContext& context) {
  const auto choice = parse_compression(text);
  REQUIRE(choice.has_value());
  return choice->info->make(*choice, context);
}
inline std::unique_ptr<Codec> codec(const CodecNet& net, const std::string& text, int workers = 1,
                                    int rank = 0) {
  return codec(text, {.parameters = net.set, .workers = workers, .rank = rank});
}

// Whole numbers, so that sums of a few are exact. The padding between tensors is 0.
inline std::vector<float> whole_numbers(const CodecNet& net, std::uint64_t seed) {
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
inline std::vector<float> sent(BlockCodec& codec, std::int64_t t, std::vector<float> gradient) {
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

inline std::vector<float> saved_tensor(Codec& codec, const std::string& name) {
  Snapshot snapshot;
  snapshot.save(codec);
  const auto bytes = snapshot.items().at(name).data();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Sums gradients of p workers, and returns what each worker gets.
inline std::vector<std::vector<float>> summed(
    const CodecNet& net, const std::string& text, const std::vector<std::vector<float>>& gradients,
    const BlockRange& range, std::vector<std::vector<float>>* residuals = nullptr) {
  const auto p = static_cast<int>(gradients.size());
  auto sums = gradients;
  const auto none = make_none();
  on_ranks(p, [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    Spans spans;
    const auto made = codec(net, text, p, transport.rank());
    const auto sum = made->make_sum(
        {.transport = transport, .ranks = p, .compressor = *none, .spans = spans}, range);
    made->begin(1);
    sum->sum(std::span(sums[rank]));
    if (residuals) (*residuals)[rank] = saved_tensor(*made, "residual");
  });
  return sums;
}

}  // namespace tandem::test
