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
  DeviceQueue& queue() const;                     // the same, as far as it moves and waits
  const std::shared_ptr<Backend>& shared_backend() const { return backend_; }
  const char* name() const;  // "cpu" or "cuda"
  bool is_cpu() const;       // its memory may be read and written by the host

  friend bool operator==(const Device&, const Device&) = default;

 private:
  std::shared_ptr<Backend> backend_;
};

// A CPU with `threads` compute threads of its own (the calling thread is one of them).
Device cpu_device(int threads = 1);

// A GPU. Throws UserError where this build or this machine has none.
Device cuda_device(const CudaOptions& options);

// Where the host makes what `device` is fed with: the device itself if it is a CPU, else host
// memory from which it copies fast.
Device host_of(const Device& device);

}  // namespace tandem
