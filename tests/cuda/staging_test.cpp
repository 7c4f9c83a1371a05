// The way of gradients between the GPU and the host: the same bytes as dist/compress makes.
#include "tensor/staging.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "tests/cuda/compare.h"
#include "tests/dist/rounding.h"

using namespace tandem;
using namespace tandem::test;

namespace {

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

// Segments of two blocks, in the order in which a ring of three needs them.
Segments segments_of(std::int64_t count) {
  Segments segments{.length = 2 * kBlock};
  const std::int64_t all = (count + segments.length - 1) / segments.length;
  for (const std::int64_t share : {2, 1, 0})
    for (std::int64_t i = share; i < all; i += 3) segments.order.push_back(i);
  return segments;
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
      const Segments segments = segments_of(count);
      for (const std::uint64_t round : {1, 2}) {  // the second one finds all buffers used
        const std::vector<float> values = gradient(count, round);
        std::vector<std::byte> expected(compressor->bytes(count));
        compressor->compress(values, expected);
        std::vector<float> unpacked(values.size());
        compressor->decompress(expected, unpacked);

        const Tensor tensor = Tensor::from(values, {count}, device);
        staging->begin(tensor, device.backend().record_event(), segments);
        REQUIRE(staging->finite());
        std::size_t same = 0;
        for (const std::int64_t segment : segments.order) {
          staging->wait(segment);
          const auto packed = staging->packed(segment);
          const std::size_t first = compressor->bytes(segment * segments.length);
          same += std::equal(packed.begin(), packed.end(),
                             expected.begin() + static_cast<std::ptrdiff_t>(first));
        }
        CHECK(same == segments.order.size());
        for (const std::int64_t segment : segments.order) staging->put(segment);
        device.backend().wait_for(staging->finish());
        CHECK(tensor.to_host<float>() == unpacked);
      }
    }
}

TEST_CASE("cuda: staging: the next values may set out before the last ones are back") {
  constexpr std::int64_t kCount = 8'000'003;
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    const auto staging = device.backend().make_staging(packing, kCount, kBlock);
    const Segments segments = segments_of(kCount);
    std::vector<Tensor> tensors;
    for (const std::uint64_t round : {1, 2, 3, 4})
      tensors.push_back(Tensor::from(gradient(kCount, round), {kCount}, device));
    EventPtr last;
    for (const Tensor& tensor : tensors) {
      staging->begin(tensor, device.backend().record_event(), segments);
      REQUIRE(staging->finite());
      for (const std::int64_t segment : segments.order) {
        staging->wait(segment);
        staging->put(segment);
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

TEST_CASE("cuda: staging: long segments are taken from where another worker has them") {
  constexpr std::int64_t kCount = 8'000'003;
  const Device device = cuda_device({});
  for (const auto& [packing, name] : kPackings) {
    CAPTURE(name);
    const auto compressor = make_compressor(name);
    Segments segments{.length = 128 * kBlock};
    for (std::int64_t first = 0; first < kCount; first += segments.length)
      segments.order.push_back(first / segments.length);
    const auto lender = device.backend().make_staging(packing, kCount, kBlock);
    const auto borrower = device.backend().make_staging(packing, kCount, kBlock);
    for (const std::uint64_t round : {1, 2}) {
      const auto lent = Tensor::from(gradient(kCount, round), {kCount}, device);
      const auto tensor = Tensor::from(gradient(kCount, 10 + round), {kCount}, device);
      const EventPtr ready = device.backend().record_event();
      lender->begin(lent, ready, segments);
      borrower->begin(tensor, ready, segments);
      REQUIRE(lender->finite());
      REQUIRE(borrower->finite());
      CHECK(borrower->borrows());
      for (const std::int64_t segment : segments.order) {
        lender->wait(segment);
        borrower->wait(segment);
        if (segment % 3 == 0) {
          std::ranges::copy(lender->packed(segment), borrower->packed(segment).data());
          borrower->put(segment);
        } else {
          borrower->put_borrowed(segment, lender->packed(segment));
        }
      }
      borrower->settle();
      for (const std::int64_t segment : segments.order)  // it has been read
        std::ranges::fill(lender->packed(segment), std::byte{0xff});
      lender->finish();
      device.backend().wait_for(borrower->finish());
      std::vector<float> expected = gradient(kCount, round);
      round_to_compressed(*compressor, expected);
      CHECK(tensor.to_host<float>() == expected);
    }
  }
  const auto staging = device.backend().make_staging(Packing::none, 10'000, kBlock);
  staging->begin(Tensor::zeros({10'000}, Dtype::f32, device), device.backend().record_event(),
                 segments_of(10'000));
  CHECK(!staging->borrows());
  CHECK(staging->finite());
  staging->finish();
}

TEST_CASE("cuda: staging: what is not finite is found, and the values can be asked for") {
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
        staging->begin(tensor, device.backend().record_event(), segments_of(10'000));
        CHECK(!staging->finite());
        CHECK(!std::isfinite(staging->values()[static_cast<std::size_t>(at)]));
      }
}
