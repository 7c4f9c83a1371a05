// The network of a simulation. NICs (network cards) and the switch between them work as those of an
// emulated link do (dist/transport/link.h). But they need no threads, and no transport below them:
// when a message leaves and arrives is computed, and VirtualTime calls it when that time has come.
//
// Ranks can also share nodes. Then each node has one NIC, and each rank has another one for
// messages within its node.
//
// One rank can stand for all. If all ranks do the same at the same time, what this rank sends to
// its right neighbour is what its left neighbour sends to it. So a message to the rank at some
// distance arrives from the rank at the same distance on the other side, and one rank shows what
// thousands would do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dist/transport/link_speed.h"
#include "dist/transport/transport.h"

namespace tandem {

struct NetworkShape {
  int ranks = 1;
  LinkSpeed link = {};                        // of every node
  std::map<int, LinkSpeed> other_links = {};  // of the nodes of these ranks
  int ranks_per_node = 1;
  LinkSpeed inner = {};      // between the ranks of a node
  bool one_for_all = false;  // only rank 0 is simulated
  // From this rank on, ranks have no nodes of their own: the first is on node 0, and so on. 0: all
  // have.
  int guests_from = 0;

  int nodes() const;
  int node_of(int rank) const;
};

class SimulatedNetwork {
 public:
  // When a rank's NIC was busy.
  struct Use {
    bool sends;  // else it receives
    Clock::time_point begin, end;
  };

  explicit SimulatedNetwork(const NetworkShape& shape);
  ~SimulatedNetwork();

  // For use in virtual time. The network must outlive it, and in_virtual_time().
  std::unique_ptr<Transport> transport(int rank);

  // Ends all waits of all ranks with JobFailed and this text. Only the first reason counts.
  void fail(const std::string& reason);

  // From now on, notes when the NIC of rank 0's node is busy.
  void note_use() { notes_use_ = true; }
  const std::vector<Use>& use() const { return use_; }

 private:
  friend class SimulatedTransport;
  struct Nic;
  struct Message;
  struct SendOperation;
  struct ReceiveOperation;
  struct Rank;

  Nic& nic(int rank, int peer);
  void send(SendOperation& operation, int to, std::size_t bytes);
  void begin_to_send(Message& message);
  void leave(Message& message);
  void arrive(Message& message);
  void expect(Message& message);
  void all_in(Message& message);
  void complete(Message& message);
  void match(Message& message, ReceiveOperation& receive);
  void release(Message& message);
  void wake(int rank);

  NetworkShape shape_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Nic>> outer_, inner_;  // by node, by rank
  std::vector<std::unique_ptr<Message>> messages_;   // all that were ever needed at a time
  std::vector<Message*> unused_;
  std::uint64_t operations_ = 0;  // so far
  bool failed_ = false;
  std::string reason_;
  bool notes_use_ = false;
  std::vector<Use> use_;
};

}  // namespace tandem
