// The way of gradients and weights between a GPU and pinned memory of the host, beside the
// computation: one stream packs and copies to the host, another one copies back and unpacks.
//
// All values are packed by one kernel, and unpacked by one: either takes far less time than their
// copy, and the host has less to queue. What is not packed is copied from its place and to its
// place. Segments are copied in groups, because to queue a copy takes the host as long as some
// 100 KB take on their way. A group is what the host needs one after the other: in a ring, segments
// of one share, which lie apart.
//
// Only a few copies to the host are queued ahead of those that have been waited for: a GPU copies
// in the order of the queue, and where several workers share it none of them may keep the others
// from their first segments until all of its own are there.
//
// Who may touch which memory, and when:
//   - values: read from `ready` on, by the first stream alone. A segment is written by the second
//     one only when the host has seen it arrive, and so after all that reads it.
//   - packed values on the GPU: a segment is overwritten by its sum when the host has seen it
//     arrive. The next begin() overwrites all of them.
//   - packed values on the host: a segment belongs to the host from wait() to put(). Then a copy
//     reads it; what the next begin() queues waits for that, and begin() itself where the host is
//     to fill it. Other workers may borrow it from put() on; who has lent it waits for them (the
//     ring, before its sum ends).
//   - borrowed bytes: a copy reads them until settle() has returned.
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

  void begin(const Tensor& values, const EventPtr& ready, const Segments& segments) override;
  bool finite() override;
  std::vector<float> values() override;
  void wait(std::int64_t segment) override;
  std::span<std::byte> packed(std::int64_t segment) override;
  void put(std::int64_t segment) override;
  bool borrows() const override;
  void put_borrowed(std::int64_t segment, std::span<const std::byte> bytes) override;
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
  void make_groups(const Segments& segments);
  void pack();
  void copy_to_host(std::size_t groups);  // so many, if they are not queued yet
  void unpack();

  const Context& context_;
  Packing packing_;
  std::int64_t count_, block_;
  Stream out_, back_;
  std::unique_ptr<std::byte[], FreeDevice> packed_;  // none where nothing is packed
  std::unique_ptr<std::byte[], FreeHost> host_;
  std::unique_ptr<int[], FreeHost> not_finite_;  // written by the GPU

  Tensor values_;
  std::int64_t length_ = 0;  // of a segment
  struct Group {
    std::int64_t first = 0, distance = 1, segments = 0;
    std::int64_t to_put = 0;  // segments
    CudaEvent arrived;

    std::int64_t at(std::int64_t i) const { return first + i * distance; }
  };
  void copy_back(const Group& group);
  std::byte* on_gpu(std::int64_t segment);

  std::deque<Group> groups_;  // in the order in which they come to the host
  // So many; of them, on their way to the host; known to be there.
  std::size_t used_ = 0, queued_ = 0, arrived_ = 0;
  std::vector<std::size_t> group_of_;   // segments
  std::vector<const std::byte*> from_;  // segments that were put
  bool put_ = false, borrowed_ = false;
  CudaEvent packed_all_, settled_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  EventPtr last_;  // behind all that was put; null before the first time
};

}  // namespace tandem::cuda
