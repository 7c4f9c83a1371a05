// The path of gradients and weights between a GPU and pinned memory of the host, while the GPU
// computes: one stream packs and copies to the host, another one copies back and unpacks.
//
// All values are packed by one kernel, and unpacked by one: either takes far less time than their
// copy, and the host has less to queue. Packed blocks lie in the order in which the host needs
// them, on the GPU and on the host, so that every segment is contiguous. Segments are copied in
// groups of neighbours, because to queue a copy takes the host as long as some 100 KB take to be
// copied.
//
// Only a few copies to the host are queued ahead of those that have been waited for: a GPU copies
// in the order of the queue, and where several workers share it none of them may keep the others
// from their first segments until all of its own are there.
//
// Who may touch which memory, and when:
//   - values: read from `ready` on, by packing. Unpacking writes them, behind the last copy back,
//     and so after the host has seen all of them arrive.
//   - packed values on the GPU: a segment is overwritten by its sum when the host has seen it
//     arrive. The next begin() overwrites all of them.
//   - packed values on the host: a segment belongs to the host from wait() to put(). Then a copy
//     reads it; what the next begin() queues waits for that, and begin() itself where the host is
//     to fill it. Other workers may read it from put() on; the sum that lets them waits for them.
//   - bytes that are put from elsewhere: a copy reads them until settle() has returned.
#pragma once

#include <cuda_runtime.h>

#include <deque>
#include <memory>
#include <vector>

#include "tensor/cuda/queue/context.h"
#include "tensor/cuda/queue/event.h"
#include "tensor/staging.h"

namespace tandem::cuda {

class CudaStaging : public Staging {
 public:
  // For tensors of `count` values. The context must outlive it, and its device is current.
  CudaStaging(const Context& context, Packing packing, std::int64_t count, std::int64_t block);
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
  struct Delete {
    void operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }
  };
  using Stream = std::unique_ptr<CUstream_st, Delete>;
  struct FreeHost {
    void operator()(void* memory) const { cudaFreeHost(memory); }
  };
  struct FreeDevice {
    void operator()(void* memory) const { cudaFree(memory); }
  };

  static Stream make_stream();
  template <class T>
  static std::unique_ptr<T[], FreeHost> pinned(std::size_t count);
  template <class T>
  static std::unique_ptr<T[], FreeDevice> on_device(std::size_t count);

  Queue queue(const Stream& stream) const;
  void lay_out(const std::vector<Segment>& segments);
  BlockOrder blocks() const;
  void pack();
  void copy_to_host(std::size_t groups);  // so many, if they are not queued yet
  void unpack();

  const Context& context_;
  Packing packing_;
  std::int64_t count_, block_;
  Stream out_, back_;
  std::unique_ptr<std::byte[], FreeDevice> packed_;
  std::unique_ptr<std::byte[], FreeHost> host_;
  std::unique_ptr<std::int32_t[], FreeDevice> order_;  // of the packed blocks
  std::unique_ptr<int[], FreeHost> not_finite_;        // written by the GPU

  Tensor values_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> places_;  // of the segments, in packed_ and host_
  struct Group {
    std::size_t first = 0, last = 0;  // segments; `last` is behind it
    std::size_t to_put = 0;           // segments
    CudaEvent arrived;
  };
  void copy_back(const Group& group);

  std::deque<Group> groups_;  // in the order in which they come to the host
  // So many; of them, on their way to the host; known to be there.
  std::size_t used_ = 0, queued_ = 0, arrived_ = 0;
  std::vector<std::size_t> group_of_;   // segments
  std::vector<const std::byte*> from_;  // segments that were put
  bool put_ = false, from_elsewhere_ = false;
  CudaEvent packed_all_, settled_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  EventPtr last_;  // behind all that was put; null before the first time
};

}  // namespace tandem::cuda
