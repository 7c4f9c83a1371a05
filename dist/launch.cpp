#include "dist/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/monitor.h"
#include "base/thread.h"
#include "base/thread_pool.h"
#include "dist/transport/collectives.h"
#include "dist/transport/link.h"
#include "dist/transport/mpi_launch.h"
#include "dist/transport/mpi_transport.h"
#include "dist/transport/stall.h"
#include "dist/transport/threads.h"

namespace tandem {
namespace {

std::unique_ptr<Transport> prepare(std::unique_ptr<Transport> transport, const RankOptions& o,
                                   ThreadPool& helpers) {
  transport->set_stall_timeout(o.stall_timeout_s);
  transport->set_helpers(&helpers);
  transport->set_ranks_per_node(o.ranks_per_node);
  return transport;
}

// All ranks must call this, after they have agreed on the speed.
void slow_down(Communication& communication, const RankOptions& o, ThreadPool& helpers,
               Nics* nics = nullptr) {
  communication.wrap([&](std::unique_ptr<Transport> transport) {
    auto slowed = slow_down(std::move(transport), o.link, nics);
    slowed->set_helpers(&helpers);
    return slowed;
  });
}

// If traits differ, all ranks throw, and rank 0 reports the difference.
void require_agreement(Communication& communication, const std::vector<Trait>& own) {
  Transport& transport = communication.transport();
  const auto found =
      communication.call([&] { return first_difference(transport, transport.size(), own); });
  if (!found) return;
  if (transport.rank() != 0) throw SaidElsewhere();
  const auto& [ranks, trait, of_rank_0] = *found;
  if (trait.name != of_rank_0.name)
    throw UserError("{} and rank 0 were not started with the same program and options",
                    name_of_ranks(ranks));
  throw UserError("rank {} has {} {}, but rank 0 has {}; all ranks need the same options",
                  ranks.front(), trait.name, trait.value, of_rank_0.value);
}

// A rank has two threads. While GPUs compute, both mostly wait.
bool has_free_cores(const RankOptions& o, int ranks_here) {
  return o.computes_elsewhere &&
         2 * ranks_here <= static_cast<int>(std::thread::hardware_concurrency());
}

// How many threads copy and add messages for a rank, including its communication thread.
int communication_threads(const RankOptions& o, int ranks_here) {
  if (!has_free_cores(o, ranks_here)) return 1;
  const int cores = static_cast<int>(std::thread::hardware_concurrency()) / ranks_here;
  return std::clamp(cores, 1, 4);
}

// The failure that caused all others. Its message names the rank if there are several.
class FirstFailure {
 public:
  explicit FirstFailure(int ranks) : alone_(ranks == 1) {}

  // Notes the exception that the caller is handling.
  void note(int rank) {
    std::exception_ptr failure = std::current_exception();
    bool follows = false;
    try {
      throw;
    } catch (const JobFailed&) {
      follows = true;
    } catch (const SaidElsewhere&) {
      follows = true;
    } catch (const UserError&) {    // it is the same on all ranks
    } catch (const Interrupted&) {  // all ranks get the signal
    } catch (const Stalled&) {      // it names another rank
    } catch (const std::exception& e) {
      if (!alone_) failure = with_rank(rank, e);
    }
    noted_.change([&](Noted& noted) {
      if (!noted.failure || (noted.follows && !follows)) noted = {failure, follows};
    });
  }

  void rethrow_if_any() {
    noted_.change([](const Noted& noted) {
      if (noted.failure) std::rethrow_exception(noted.failure);
    });
  }

 private:
  struct Noted {
    std::exception_ptr failure;
    bool follows = false;  // another rank's failure caused it
  };

  static std::exception_ptr with_rank(int rank, const std::exception& e) {
    const std::string message = fmt::format("rank {}: {}", rank, e.what());
    if (dynamic_cast<const std::logic_error*>(&e))
      return std::make_exception_ptr(std::logic_error(message));
    if (dynamic_cast<const Diverged*>(&e)) return std::make_exception_ptr(Diverged("{}", message));
    return std::make_exception_ptr(SystemError("{}", message));
  }

  bool alone_;
  Monitor<Noted> noted_;
};

void run_on_threads(RankOptions o, const std::function<void(Communication&)>& body) {
  const int threads = communication_threads(o, o.ranks);
  o.ranks_per_node = std::max(1, o.ranks_per_node);
  Nics nics = nics_of_nodes(o.ranks, o.ranks_per_node, o.link);
  ThreadsNetwork network(o.ranks,
                         static_cast<std::size_t>(threads) * ThreadsNetwork::kBytesPerCore);
  FirstFailure failure(o.ranks);
  const auto run = [&](int rank) {
    try {
      ThreadPool helpers(threads);
      Communication communication([&] { return prepare(network.transport(rank), o, helpers); });
      slow_down(communication, o, helpers, o.ranks_per_node > 1 ? &nics : nullptr);
      body(communication);
    } catch (const SaidElsewhere&) {  // the rank that reports the error ends the job
      failure.note(rank);
    } catch (...) {
      failure.note(rank);
      network.fail(fmt::format("rank {} has failed", rank));
    }
  };
  {
    std::vector<Thread> ranks;
    try {
      for (int rank = 0; rank < o.ranks; ++rank)
        ranks.push_back(
            start_thread(fmt::format("rank {}", rank), Work::computes, [&, rank] { run(rank); }));
    } catch (const std::exception& e) {
      network.fail("not all ranks could be started");
      throw SystemError("cannot start {} ranks: {}", o.ranks, e.what());
    }
  }
  failure.rethrow_if_any();
}

// `mistake` is an earlier UserError of this rank, or null.
void run_under_mpi(const RankOptions& o, const std::exception_ptr& mistake,
                   const std::function<void(Communication&)>& body) {
  ThreadPool helpers(communication_threads(o, mpi_launch()->local_size));
  Communication communication([&] { return prepare(open_mpi(), o, helpers); });
  const auto abort = [&](int status) { communication.call([&] { abort_mpi(status); }); };
  // Not fmt::print(): it throws if stderr cannot be written, and then the job would not be aborted.
  const auto say = [&](const std::string& rank, const std::exception& e) {
    std::fputs(fmt::format("{}: {}{}\n", o.app, rank, e.what()).c_str(), stderr);
  };
  const std::string here = fmt::format("rank {}: ", communication.transport().rank());
  const auto close = [&] {
    communication.call([&] {
      wait_for_all(communication.transport());
      close_mpi();
    });
  };
  try {
    together(communication, [&] {
      if (mistake) std::rethrow_exception(mistake);
    });
    require_agreement(communication, o.same);
    slow_down(communication, o, helpers);
    body(communication);
    close();
  } catch (const SaidElsewhere&) {  // the rank that reports the error ends the job
    close();
    throw;
  } catch (const UserError& e) {
    say("", e);
    abort(2);
  } catch (const Interrupted& e) {
    say("", e);
    abort(128 + e.signal);
  } catch (const Diverged& e) {
    say(here, e);
    abort(3);
  } catch (const Stalled& e) {  // it names another rank
    say("", e);
    abort(1);
  } catch (const std::exception& e) {
    say(here, e);
    abort(1);
  }
}

}  // namespace

void run_on_ranks(const RankOptions& options, const std::function<void(Communication&)>& body) {
  const auto launch = mpi_launch();
  const int here = launch ? launch->local_size : options.ranks;
  const SpinWhileWaiting spin(has_free_cores(options, here));
  launch ? run_under_mpi(options, nullptr, body) : run_on_threads(options, body);
}

void leave_before_ranks(const std::string& app, const std::exception_ptr& why) {
  if (mpi_launch().value_or(MpiLaunch{}).size == 1 || !can_start_mpi()) return;
  try {
    run_under_mpi({.app = app, .same = {{"this rank", "ends"}}}, why, [](Communication&) {});
  } catch (const SaidElsewhere&) {
    throw;
  } catch (const UserError&) {  // MPI could not be started, so no rank waits for this one
  }
}

void together(Communication& communication, const std::function<void()>& make) {
  if (!mpi_launch()) return make();  // run_on_ranks() reports only the first exception
  std::exception_ptr mistake;
  try {
    make();
  } catch (const UserError&) {
    mistake = std::current_exception();
  }
  Transport& transport = communication.transport();
  std::vector<double> failed(static_cast<std::size_t>(transport.size()));
  const auto rank = static_cast<std::size_t>(transport.rank());
  failed[rank] = mistake ? 1 : 0;
  communication.call([&] { sum_over_ranks(transport, transport.size(), failed); });
  const auto first =
      static_cast<std::size_t>(std::find(failed.begin(), failed.end(), 1.0) - failed.begin());
  if (first == failed.size()) return;
  if (first != rank) throw SaidElsewhere();
  if (rank == 0) std::rethrow_exception(mistake);
  try {  // the message names this rank, because lower ranks have no error
    std::rethrow_exception(mistake);
  } catch (const UserError& e) {
    throw UserError("rank {}: {}", rank, e.what());
  }
}

}  // namespace tandem
