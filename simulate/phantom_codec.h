// A codec for gradients without content: it takes time instead of encoding, and its messages are as
// long as those of the real one.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "dist/codecs/block_codec.h"
#include "dist/codecs/codec_work.h"
#include "dist/timing/profile.h"

namespace tandem {

// What all ranks share: how long encoded blocks are.
class PhantomCodecs {
 public:
  // `compress` must name a codec that encodes blocks. `cost` must outlive it.
  PhantomCodecs(const std::string& compress, int workers, const HostCost& cost);

  // For one rank; this must outlive it.
  std::unique_ptr<Codec> make();

  const EncodedSizes& sizes(std::int64_t count);
  const HostCost& cost() const { return cost_; }
  // Unlike gradients, encoded messages are stored. This is how much memory a rank needs for them.
  double bytes_of_messages(std::int64_t elements);

 private:
  CodecChoice choice_;
  int workers_;
  const HostCost& cost_;
  // Its padding would be cleared, so it has none.
  Parameter weight_;
  ParameterSet set_;
  std::map<std::int64_t, EncodedSizes> sizes_;  // of blocks, by the number of elements
};

// Throws UserError if the text names a codec that cannot be simulated.
void require_simulable(const std::string& compress);

}  // namespace tandem
