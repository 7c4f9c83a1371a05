// Compression of gradients that is not embedded in the ring, because it remembers, draws random
// numbers, or has no fixed size: TernGrad, QSGD, 1-bit SGD, top-k, random-k, DGC, PowerSGD. Every
// worker encodes its gradient once. What an encoding leaves out may be remembered and added to the
// next gradient (error feedback). README.md has the picture and the table.
//
// A worker has one Codec, which all sums of the worker share. The communication thread calls it
// during sums. Between iterations, when nothing is in flight, the compute thread may.
#pragma once

#include <cstdint>
#include <memory>

#include "autograd/parameter.h"
#include "dist/all_reduce.h"
#include "dist/block.h"
#include "tensor/state.h"

namespace tandem {

// What a codec works with. The parameters must outlive it.
struct CodecContext {
  const ParameterSet& parameters;
  int workers = 1;
  int rank = 0;
  std::uint64_t seed = 1;
  bool error_feedback = true;
  // Of the optimizer, for a codec that applies momentum itself (CodecInfo::owns_momentum).
  double momentum = 0;
  bool nesterov = false;
  std::int64_t iterations_per_epoch = 1;  // for a codec that begins with mild compression
  // Where to encode: the gradient's device, if it can (DeviceQueue::encodes), or a CPU.
  Device device = cpu_device(1);
};

class BlockCodec;

class Codec {
 public:
  explicit Codec(const CodecContext& context) : context_(context) {}
  virtual ~Codec() = default;

  const CodecContext& context() const { return context_; }

  // Before the first sum of an iteration; may be called again. Iterations below 1 are trials. They
  // send as much as iterations after any warm-up.
  virtual void begin(std::int64_t iteration) { iteration_ = iteration; }

  // Sums a range of encoded gradients over all workers. The group's compressor must be `none`.
  virtual std::unique_ptr<AllReduce> make_sum(const AllReduce::Group& group,
                                              const BlockRange& range) = 0;
  // For algorithms with servers: this codec, if it encodes block by block.
  virtual BlockCodec* blocks() { return nullptr; }

  // Whether gradients are encoded by the device that has them. Otherwise it is the host.
  virtual bool on_device() const { return false; }

  // How many elements of the gradient are sent plain, because encoding them would not gain.
  virtual std::int64_t plain_elements() const { return 0; }

  // What the codec remembers between two iterations (tensor/state.h).
  virtual void visit(State& state) { (void)state; }

 protected:
  std::int64_t count() const { return context_.parameters.values().count(); }

  CodecContext context_;
  std::int64_t iteration_ = 0;
};

}  // namespace tandem
