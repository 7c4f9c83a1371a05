// Where tensors live and operations run. A Device is a cheap handle to a Backend; every worker
// makes its own, so that several workers in one process share neither threads nor streams.
// There is no current device: operations run where their tensors are.
#pragma once

#include <memory>
#include <utility>

namespace tandem {

class Backend;
class DeviceQueue;
struct CudaOptions;

class Device {
 public:
  explicit Device(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  Backend& backend() const { return *backend_; }  // its mathematics
  DeviceQueue& queue() const;                     // its memory and its queue of work
  const std::shared_ptr<Backend>& shared_backend() const { return backend_; }
  const char* name() const;  // "cpu" or "cuda"
  bool is_cpu() const;       // the host may read and write its memory

  friend bool operator==(const Device&, const Device&) = default;

 private:
  std::shared_ptr<Backend> backend_;
};

// A CPU with its own `threads` compute threads, including the calling thread.
Device cpu_device(int threads = 1);

// A GPU. Throws UserError if this build or this machine has none.
Device cuda_device(const CudaOptions& options);

// Where the host prepares data for `device`: the device itself if it is a CPU, otherwise host
// memory that it can copy from fast.
Device host_of(const Device& device);

}  // namespace tandem
