#include "simulate/phantom_codec.h"

#include "base/error.h"
#include "simulate/phantom_device.h"

namespace tandem {
namespace {

class PhantomCodec : public BlockCodec {
 public:
  PhantomCodec(PhantomCodecs& shared, const CodecContext& context)
      : BlockCodec(context), shared_(shared) {}

  std::size_t most_bytes(std::int64_t count) const override { return shared_.sizes(count).sent; }
  std::size_t most_sum_bytes(std::int64_t count) const override {
    return shared_.sizes(count).returned;
  }

  std::size_t encode(std::int64_t, std::span<const float> values, std::byte*) override {
    host_works(std::ssize(values), shared_.cost().compress);
    return most_bytes(std::ssize(values));
  }
  std::size_t add(std::int64_t, std::span<const std::byte>, std::span<float> sum) const override {
    host_works(std::ssize(sum), shared_.cost().add);
    return most_bytes(std::ssize(sum));
  }
  std::size_t encode_sum(std::int64_t, std::span<const float> sum, std::byte*) override {
    host_works(std::ssize(sum), shared_.cost().encode_sum);
    return most_sum_bytes(std::ssize(sum));
  }
  std::size_t decode_sum(std::int64_t, std::span<const std::byte>,
                         std::span<float> values) const override {
    host_works(std::ssize(values), shared_.cost().decompress);
    return most_sum_bytes(std::ssize(values));
  }

 private:
  PhantomCodecs& shared_;
};

}  // namespace

PhantomCodecs::PhantomCodecs(const std::string& compress, int workers, const HostCost& cost)
    : choice_(parse_compression(compress).value()),
      workers_(workers),
      cost_(cost),
      weight_({kBlock}, Parameter::Make()),
      set_({{"weight", &weight_}}, cpu_device(1)) {}

std::unique_ptr<Codec> PhantomCodecs::make() {
  return std::make_unique<PhantomCodec>(*this,
                                        CodecContext{.parameters = set_, .workers = workers_});
}

const EncodedSizes& PhantomCodecs::sizes(std::int64_t count) {
  const auto [found, is_new] = sizes_.try_emplace(count);
  if (is_new) found->second = sizes_of_block(choice_, workers_, count);
  return found->second;
}

double PhantomCodecs::bytes_of_messages(std::int64_t elements) {
  const EncodedSizes& block = sizes(kBlock);
  return static_cast<double>(elements) / kBlock *
         static_cast<double>(2 * block.sent + block.returned);
}

void require_simulable(const std::string& compress) {
  if (const auto codec = parse_compression(compress); codec && !codec->info->by_block)
    throw UserError(
        "--compress {} cannot be simulated: it encodes matrices, and profiles do not know the "
        "shapes of tensors",
        compress);
}

}  // namespace tandem
