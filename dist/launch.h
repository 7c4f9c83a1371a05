// Runs a job on all its ranks: on threads of this process or, where mpiexec has started it, as one
// rank of many processes.
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
  int ranks = 1;    // under mpiexec, what it has started
  LinkSpeed link;
  double stall_timeout_s = 60;
  bool computes_elsewhere = false;  // on GPUs: the cores are free for communication
  std::vector<Trait> same = {};     // options that all ranks must have alike
};

// Compares what all ranks must have alike, before anything depends on it: where it differs, all
// throw UserError, and one says what and where. Then calls body(communication) on every rank that
// lives in this process, each on a thread of its own, and waits for them. If a rank fails, the
// whole job ends: all waits of all ranks end with JobFailed, and what the first one threw is thrown
// here, with its rank. Under mpiexec the failing rank says what it is and takes the other processes
// down with it.
//
// A body that has posted jobs must stop the communication before it lets an exception out, because
// the jobs use what the body owns.
void run_on_ranks(const RankOptions& options, const std::function<void(Communication&)>& body);

// For a rank that ends before it comes to run_on_ranks, as after a mistake on its command line (why
// it ends; null: all was well). Where mpiexec has started others, they wait for it. They hear of
// it, and the job ends, unless all have ended well; a mistake that many have made is said once.
// Does nothing where nobody waits.
void leave_before_ranks(const std::string& app, const std::exception_ptr& why);

// Makes something on every rank that all of them need. Where it fails on one, with a mistake of the
// user's, it fails on all, and only one of them says why, and which rank it is.
void together(Communication& communication, const std::function<void()>& make);

}  // namespace tandem
