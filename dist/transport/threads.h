// Ranks that are threads of one process. A message is copied once, from the sender's memory to the
// receiver's, or read or kept in the sender's memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "dist/transport/transport.h"

namespace tandem {

class ThreadsNetwork {
 public:
  // How many bytes in flight a sender should have per core. They should still be in the cache when
  // the receiver reads them.
  static constexpr std::size_t kBytesPerCore = 1 << 20;

  explicit ThreadsNetwork(int size, std::size_t bytes_in_flight = kBytesPerCore);
  ~ThreadsNetwork();

  int size() const { return static_cast<int>(mailboxes_.size()); }
  // The transport of `rank`; it must not outlive the network.
  std::unique_ptr<Transport> transport(int rank);

  // Ends all waits of all ranks with JobFailed and this text. Only the first reason counts.
  void fail(const std::string& reason);

 private:
  friend class ThreadsTransport;
  struct ThreadsOperation;

  void throw_failure();

  // Sends to a rank and receives by it that have no counterpart yet, oldest first. The rank also
  // waits on this monitor for its own operations.
  struct Mailbox {
    std::list<ThreadsOperation*> sends, receives;
  };

  std::size_t bytes_in_flight_;
  std::vector<std::unique_ptr<Monitor<Mailbox>>> mailboxes_;
  std::vector<std::atomic<Sign>> signs_;  // by rank
  std::atomic<bool> failed_ = false;
  Monitor<std::string> reason_;
};

}  // namespace tandem
