// Staging between the GPU and the host. The GPU packs to the same bytes as dist/compress.
#include "tensor/staging.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/ring_allreduce/plan.h"
#include "tests/cuda/compare.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr auto from_values = Staging::Fill::from_values;

constexpr std::pair<Packing, const char*> kPackings[] = {
    {Packing::none, "none"}, {Packing::trunc16, "trunc16"}, {Packing::quant8, "quant8"}};

std::vector<float> gradient(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values)
    v = static_cast<float>(random.normal() * std::pow(10.0, random.uniform(-8, 2)));
  if (count > 10) values[3] = 0, values[5] = -0.0F, values[7] = 1e-40F;
  return values;
}

// Segments of two blocks, as in a ring of three ranks. A single block is cut into pieces.
std::vector<Segment> segments_of(std::int64_t count) {
  const bool pieces = count <= kBlock;
  return ring_plan(0, 3, {.count = count, .first_block = 4},
                   {.segment = pieces ? 300 : 2 * kBlock, .in_part = pieces ? 10 : 3})
      .segments;
}

}  // namespace

TEST_CASE("cuda: staging: packs to the host's bytes and unpacks to the host's values") {
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings)
    for (const std::int64_t count :
         {1, 3, 2047, 2048, 2049, 2051, 4101, 20'000, 300'001, 8'000'003}) {
      CAPTURE(name);
      CAPTURE(count);
      const auto compressor = make_compressor(name);
      const auto staging = device.backend().make_staging(packing, count, kBlock);
      auto segments = segments_of(count);
      if (packing == Packing::quant8 && count <= kBlock)  // quant8 does not divide blocks
        segments = {{.first = 0, .count = count, .step = kBlock}};
      for (const std::uint64_t round : {1, 2}) {  // the second one reuses all buffers
        const std::vector<float> values = gradient(count, round);
        std::vector<float> unpacked = values;
        round_to_compressed(*compressor, unpacked);

        const Tensor tensor = Tensor::from(values, {count}, device);
        staging->begin(tensor, device.backend().record_event(), segments, from_values);
        REQUIRE(staging->finite());
        std::size_t same = 0;
        for (std::size_t i = 0; i < segments.size(); ++i) {
          staging->wait(i);
          same += std::ranges::equal(staging->packed(i).whole(),
                                     packed_on_host(*compressor, values, segments[i]));
        }
        CHECK(same == segments.size());
        for (std::size_t i = 0; i < segments.size(); ++i)
          if (segments[i].count > 0) staging->put(i, staging->packed(i));
        device.backend().wait_for(staging->finish());
        CHECK(tensor.to_host<float>() == unpacked);
      }
    }
}

TEST_CASE("cuda: staging: the next values may begin before the last ones are back on the GPU") {
  constexpr std::int64_t kCount = 8'000'003;
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    const auto staging = device.backend().make_staging(packing, kCount, kBlock);
    const auto segments = segments_of(kCount);
    std::vector<Tensor> tensors;
    for (const std::uint64_t round : {1, 2, 3, 4})
      tensors.push_back(Tensor::from(gradient(kCount, round), {kCount}, device));
    EventPtr last;
    for (const Tensor& tensor : tensors) {
      staging->begin(tensor, device.backend().record_event(), segments, from_values);
      REQUIRE(staging->finite());
      for (std::size_t i = 0; i < segments.size(); ++i) {
        staging->wait(i);
        if (segments[i].count > 0) staging->put(i, staging->packed(i));
      }
      last = staging->finish();
    }
    device.backend().wait_for(last);
    for (std::size_t round = 0; round < tensors.size(); ++round) {
      std::vector<float> expected = gradient(kCount, round + 1);
      round_to_compressed(*compressor, expected);
      CHECK(tensors[round].to_host<float>() == expected);
    }
  }
}

TEST_CASE("cuda: staging: segments can be put from another worker's memory") {
  constexpr std::int64_t kCount = 8'000'003;
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    std::vector<Segment> segments;
    for (std::int64_t first = 0; first < kCount; first += 128 * kBlock)
      segments.push_back(
          {.first = first, .count = std::min(128 * kBlock, kCount - first), .step = kBlock});
    const auto lender = device.backend().make_staging(packing, kCount, kBlock);
    const auto borrower = device.backend().make_staging(packing, kCount, kBlock);
    for (const std::uint64_t round : {1, 2}) {
      const auto lent = Tensor::from(gradient(kCount, round), {kCount}, device);
      const auto tensor = Tensor::from(gradient(kCount, 10 + round), {kCount}, device);
      const EventPtr ready = device.backend().record_event();
      lender->begin(lent, ready, segments, from_values);
      borrower->begin(tensor, ready, segments, from_values);
      REQUIRE(lender->finite());
      REQUIRE(borrower->finite());
      for (std::size_t i = 0; i < segments.size(); ++i) {
        lender->wait(i);
        borrower->wait(i);
        if (i % 3 == 0) {
          std::ranges::copy(lender->packed(i).whole(), borrower->packed(i).data);
          borrower->put(i, borrower->packed(i));
        } else {
          borrower->put(i, lender->packed(i));
        }
      }
      borrower->settle();
      for (std::size_t i = 0; i < segments.size(); ++i)  // settle() has read them
        std::ranges::fill(lender->packed(i).whole(), std::byte{0xff});
      lender->finish();
      device.backend().wait_for(borrower->finish());
      std::vector<float> expected = gradient(kCount, round);
      round_to_compressed(*compressor, expected);
      CHECK(tensor.to_host<float>() == expected);
    }
  }
}

TEST_CASE("cuda: staging: finite() finds NaN and infinity, and values() returns them") {
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings)
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
      for (const std::int64_t at : {0, 2048, 9999}) {
        CAPTURE(name);
        CAPTURE(at);
        const auto staging = device.backend().make_staging(packing, 10'000, kBlock);
        std::vector<float> values = gradient(10'000, 1);
        values[static_cast<std::size_t>(at)] = bad;
        const Tensor tensor = Tensor::from(values, {10'000}, device);
        const auto segments = segments_of(10'000);
        staging->begin(tensor, device.backend().record_event(), segments, from_values);
        CHECK(!staging->finite());
        CHECK(!std::isfinite(staging->values()[static_cast<std::size_t>(at)]));
      }
}
