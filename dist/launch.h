// Runs a job on all its ranks: on threads of this process or, where mpiexec has started it, as one
// rank of many processes.
#pragma once

#include <functional>
#include <string>

#include "dist/communication.h"
#include "dist/transport/link_speed.h"

namespace tandem {

struct RankOptions {
  std::string app;  // for messages
  int ranks = 1;    // under mpiexec, what it has started
  LinkSpeed link;
  double stall_timeout_s = 60;
  bool computes_elsewhere = false;  // on GPUs: the cores are free for communication
};

// Calls body(communication) on every rank that lives in this process, each on a thread of its own,
// and waits for them. If a rank fails, the whole job ends: all waits of all ranks end with
// JobFailed, and what the first one threw is thrown here, with its rank. Under mpiexec the failing
// rank says what it is and takes the other processes down with it.
//
// A body that has posted jobs must stop the communication before it lets an exception out, because
// the jobs use what the body owns.
void run_on_ranks(const RankOptions& options, const std::function<void(Communication&)>& body);

// Makes something on every rank that all of them need. Where it fails on one, with a mistake of the
// user's, it fails on all, and only one of them says why.
void together(Communication& communication, const std::function<void()>& make);

}  // namespace tandem
