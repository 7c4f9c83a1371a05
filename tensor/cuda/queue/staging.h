// Moves gradients and weights between a GPU and pinned host memory while the GPU computes. One
// stream packs and copies to the host, another copies back and unpacks. A GPU has few hardware
// queues, and streams in one queue wait for each other, so all stagings of a worker share the two
// streams. Work on a shared stream runs in order, so it should be queued in the order in which it
// can run: begin() is called as values become ready, and put() as sums arrive.
//
// One kernel packs all values, and one unpacks them. Each takes far less time than the copy, and
// one kernel is quick to queue. On the GPU and on the host, packed blocks lie in the order in which
// the host needs them, so every segment is contiguous. Adjacent segments are copied in groups,
// because queueing a copy takes as long as copying about 100 KB.
//
// A GPU makes copies in the order of queueing. If several workers share it, one that queued 100 MB
// of copies would delay the first segments of the others. So a large staging (more than 16 MB)
// queues only a few copies to the host ahead. On the shared stream, the later ones would wait for
// values of other stagings that are not ready yet, so it packs and copies on a stream of its own.
//
// These rules order all accesses to memory:
//   - Values: packing reads them after `ready`. Unpacking writes them after the last copy back, so
//     the host has already seen all of them arrive. If the host fills the segments, copies back
//     wait for `ready` on the GPU.
//   - Packed values on the GPU: the sum overwrites a segment after the host has seen it arrive. The
//     next begin() overwrites all segments.
//   - Packed values on the host: a segment belongs to the host from wait() to put(). Then a copy
//     reads it. The copies that the next begin() queues wait for that; if the host fills the
//     segments, begin() itself waits. Other workers may read a segment after put(), and the
//     all-reduce waits until they have done so.
//   - Bytes that were put from elsewhere: a copy reads them until settle() returns.
#pragma once

#include <cuda_runtime.h>

#include <deque>
#include <memory>
#include <vector>

#include "tensor/cuda/queue/context.h"
#include "tensor/cuda/queue/event.h"
#include "tensor/cuda/queue/memory.h"
#include "tensor/staging.h"

namespace tandem::cuda {

class CopyStream {
 public:
  // On the current device.
  CopyStream();
  ~CopyStream() { cudaStreamDestroy(stream_); }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT

 private:
  cudaStream_t stream_ = nullptr;
};

struct CopyStreams {
  CopyStream out, back;  // to the host, and from it
};

class CudaStaging : public Staging {
 public:
  // For tensors of `count` values. The context and the worker's streams must outlive this object,
  // and the context's device must be current.
  CudaStaging(const Context& context, const CopyStreams& streams, Packing packing,
              std::int64_t count, std::int64_t block);
  ~CudaStaging() override;

  void begin(const Tensor& values, const EventPtr& ready, const std::vector<Segment>& segments,
             Fill fill) override;
  bool finite() override;
  std::vector<float> values() override;
  void wait(std::size_t segment) override;
  Pieces packed(std::size_t segment) override;
  void put(std::size_t segment, const ConstPieces& bytes) override;
  void settle() override;
  EventPtr finish() override;

 private:
  Queue queue(cudaStream_t stream) const;
  void lay_out(const std::vector<Segment>& segments);
  BlockOrder blocks() const;
  void pack();
  void copy_to_host(std::size_t groups);  // queues copies up to this number of groups
  void unpack();

  const Context& context_;
  Packing packing_;
  std::int64_t count_, block_;
  std::unique_ptr<CopyStream> own_out_;  // of a large staging
  cudaStream_t out_, back_;
  DeviceMemory<std::byte> packed_;
  PinnedMemory<std::byte> host_;
  DeviceMemory<std::int32_t> order_;  // of the packed blocks
  PinnedMemory<int> not_finite_;      // written by the GPU

  Tensor values_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> places_;  // of the segments, in packed_ and host_
  struct Group {
    std::size_t first = 0, last = 0;  // segments first … last-1
    std::size_t to_put = 0;           // segments not put yet
    CudaEvent arrived;
  };
  void copy_back(const Group& group);

  std::deque<Group> groups_;  // in the order in which they are copied to the host
  // Numbers of groups: in use, queued for copying to the host, and known to have arrived.
  std::size_t used_ = 0, queued_ = 0, arrived_ = 0;
  std::vector<std::size_t> group_of_;   // by segment
  std::vector<const std::byte*> from_;  // by segment: the bytes that were put
  bool put_ = false, from_elsewhere_ = false;
  CudaEvent packed_all_, settled_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  EventPtr last_;  // after the last unpacking; null before the first finish()
};

}  // namespace tandem::cuda
