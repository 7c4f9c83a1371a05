// Runs a job on all its ranks. They are threads of this process, or processes started by mpiexec.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/communication.h"
#include "dist/transport/link_speed.h"

namespace tandem {

struct RankOptions {
  std::string app;  // for messages
  int ranks = 1;    // ignored under mpiexec, which sets the number
  LinkSpeed link;
  // So many consecutive ranks share a node and its link. 0: over threads, every rank is a node;
  // over MPI, nodes are machines. An emulated link over MPI has one rank per node.
  int ranks_per_node = 0;
  double stall_timeout_s = 60;
  bool computes_elsewhere = false;  // on GPUs: the CPU cores are free for communication
  std::vector<Trait> same = {};     // options that must be equal on all ranks
};

// Calls body(communication) on every rank of this process and waits for all of them. Ranks that are
// threads run at the same time. If one fails, all waits of the others end with JobFailed, and the
// first exception is rethrown here, with the rank in its message.
//
// Under mpiexec, ranks first compare `same`. If it differs, all ranks throw UserError, and one of
// them reports what differs and where. If a rank fails later, it prints its error and aborts the
// whole job.
//
// A body that has posted jobs must call Communication::stop() before an exception leaves it,
// because the jobs use objects that the body owns.
void run_on_ranks(const RankOptions& options, const std::function<void(Communication&)>& body);

// Call it if this rank ends without run_on_ranks(), for instance because of a usage error. `why` is
// the error, or null if the rank ends normally. Under mpiexec, other ranks may wait for this one:
// they are told, and the job ends with an error unless all ranks end normally. An error that
// several ranks have is reported once. Does nothing if there are no other ranks or MPI has been
// started already.
void leave_before_ranks(const std::string& app, const std::exception_ptr& why);

// Runs `make` on every rank. If it throws UserError on one, all ranks throw, and only one of them
// reports the error, with its rank.
void together(Communication& communication, const std::function<void()>& make);

}  // namespace tandem
