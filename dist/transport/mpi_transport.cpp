#include "dist/transport/mpi_transport.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <list>
#include <vector>

#include "base/error.h"
#include "base/monitor.h"
#include "dist/transport/crash.h"
#include "dist/transport/hydra.h"
#include "dist/transport/mpi_launch.h"

namespace tandem {
namespace {

bool closed = false;  // from then on, MPI must not be called

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// The pause between two tests of a request. MPI has no wait that sleeps, so a waiting thread must
// poll and let other threads use the core in between. If the cores are idle or only other waiting
// threads want them, yielding is best: it takes a microsecond. If a thread has work, a yield gives
// the core away for many milliseconds. Then sleeping is better, because a thread that wakes up gets
// a core at once. So this class yields until a yield takes long. Then it sleeps instead, for
// 25 ms. If a yield takes long again soon afterwards, as with compute threads that need the cores
// in every iteration, the next period is twice as long, up to 2 s.
class Pause {
 public:
  // Between machines, messages take so long that sleeping too often costs little.
  explicit Pause(bool on_one_node)
      : long_yield_(on_one_node ? std::chrono::milliseconds(2) : std::chrono::microseconds(300)) {}

  void begin() { sleep_ = kShortest; }

  void operator()() {
    const auto now = Clock::now();
    if (now < busy_until_) {
      tandem::sleep_until(now + sleep_);
      sleep_ = std::min<Clock::duration>(2 * sleep_, kLongest);
      return;
    }
    ::sched_yield();
    const auto after = Clock::now();
    if (after - now < long_yield_) return;
    const bool again = now - busy_until_ < 4 * busy_for_;
    busy_for_ = again ? std::min<Clock::duration>(2 * busy_for_, kLongestPeriod) : kShortestPeriod;
    busy_until_ = after + busy_for_;
  }

 private:
  static constexpr std::chrono::microseconds kShortest{2}, kLongest{64};
  static constexpr Clock::duration kShortestPeriod = std::chrono::milliseconds(25),
                                   kLongestPeriod = std::chrono::seconds(2);
  Clock::duration long_yield_;
  Clock::duration sleep_ = kShortest;
  Clock::duration busy_for_ = kShortestPeriod;
  Clock::time_point busy_until_{};
};

// A cancelled operation is left to MPI, because the job is about to be aborted.
struct MpiOperation final : Operation {
  MpiOperation(Kind k, int with, Tag what, std::size_t size) : Operation(k, with, what, size) {}
  MPI_Request request = MPI_REQUEST_NULL;
  bool finished = false;
};

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    find_nodes();
    pause_ = Pause(on_one_node());
    seen_.resize(static_cast<std::size_t>(size_));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int machine(int rank) const override { return nodes_[static_cast<std::size_t>(rank)]; }
  bool on_one_node() const override {
    return std::ranges::all_of(nodes_, [&](int node) { return node == nodes_[0]; });
  }

  Request begin_send(int to, Tag tag, std::span<const std::byte> bytes, const Storage&) override {
    auto own = make(Operation::Kind::send, to, tag, bytes.size());
    check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to,
                    static_cast<int>(tag), MPI_COMM_WORLD, &own->request),
          *own);
    return own;
  }

  Request receive(int from, Tag tag, std::span<std::byte> bytes) override {
    auto own = make(Operation::Kind::receive, from, tag, bytes.size());
    own->data = bytes.data();
    check(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                    from == kAnyRank ? MPI_ANY_SOURCE : from, static_cast<int>(tag), MPI_COMM_WORLD,
                    &own->request),
          *own);
    return own;
  }

  bool wait_any_until(std::span<Request* const> requests, Clock::time_point time) override {
    pause_.begin();
    for (;;) {
      if (failed_.load(std::memory_order_acquire))
        reason_.change([](const std::string& reason) { throw JobFailed(reason); });
      bool any = false;  // tests all of them, because done() reports each
      for (Request* request : requests)
        any |= !*request || test(static_cast<MpiOperation&>(**request));
      if (any) return true;
      if (Clock::now() >= time || woken_.exchange(false)) return false;
      pause_();
    }
  }

  bool done(const Request& request) const override {
    // Does not test: only waiting makes progress.
    return !request || static_cast<const MpiOperation&>(*request).finished;
  }

  void fail(const std::string& reason) override {
    reason_.change([&](std::string& text) { text = reason; });
    failed_.store(true, std::memory_order_release);
  }

  void wake() override { woken_ = true; }

  // Answers ranks that have asked, and reads the answers of others.
  void show(const Sign& sign) override {
    if (closed) return;
    std::erase_if(notes_, [](Note& note) {
      int done = 0;
      MPI_Test(&note.request, &done, MPI_STATUS_IGNORE);
      return done;
    });
    for (;;) {
      int here = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kNoteTag, MPI_COMM_WORLD, &here, &status);
      if (!here) return;
      Note::Text text{};
      MPI_Recv(&text, sizeof text, MPI_BYTE, status.MPI_SOURCE, kNoteTag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      seen_[static_cast<std::size_t>(status.MPI_SOURCE)] = {text.sign, Clock::now()};
      if (text.kind != Note::Kind::answer) write(status.MPI_SOURCE, {Note::Kind::answer, sign});
      if (text.kind == Note::Kind::earnest_question && status.MPI_SOURCE < rank_)
        another_asked_ = Clock::now();
    }
  }

  // A question also tells the sender's state, because an answer may be stuck behind large messages.
  void ask(const Sign& sign, bool in_earnest) override {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_)
        write(rank, {in_earnest ? Note::Kind::earnest_question : Note::Kind::question, sign});
  }

  std::vector<Sign> signs(Clock::time_point since) const override {
    std::vector<Sign> all;
    for (const Seen& seen : seen_) all.push_back(seen.at >= since ? seen.sign : Sign{});
    return all;
  }

  Clock::duration answer_time() const override {
    return std::clamp<Clock::duration>(from_seconds(stall_timeout()),
                                       std::chrono::milliseconds(500), std::chrono::seconds(2));
  }
  // Leaves it to the lowest rank that asks, which asks twice in that time.
  bool left_to_another() const override { return Clock::now() - another_asked_ < answer_time(); }

 private:
  // A message about a rank's state.
  struct Note {
    enum class Kind { question, earnest_question, answer };
    struct Text {
      Kind kind;
      Sign sign;  // the sender's
    };
    Text text;
    MPI_Request request;
  };
  static constexpr int kNoteTag =
      2 * kTags * kChannels;  // above the tags of messages and announcements

  // Does not wait for the send, because the receiver may never take it.
  void write(int to, const Note::Text& text) {
    notes_.push_back({text, MPI_REQUEST_NULL});
    Note& note = notes_.back();
    MPI_Isend(&note.text, sizeof note.text, MPI_BYTE, to, kNoteTag, MPI_COMM_WORLD, &note.request);
  }

  std::unique_ptr<MpiOperation> make(Operation::Kind kind, int peer, Tag tag, std::size_t bytes) {
    require(bytes <= INT_MAX, "a message of {} bytes is too long for MPI", bytes);
    return std::make_unique<MpiOperation>(kind, peer, tag, bytes);
  }

  bool test(MpiOperation& o) {
    if (o.finished) return true;
    int flag = 0;
    MPI_Status status;
    check(MPI_Test(&o.request, &flag, &status), o);
    if (!flag) return false;
    o.finished = true;
    if (o.kind == Operation::Kind::receive) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      o.bytes = static_cast<std::size_t>(bytes);
      o.source = status.MPI_SOURCE;
    }
    return true;
  }

  static void check(int code, const Operation& o) {
    if (code != MPI_SUCCESS)
      throw SystemError("{} {} failed: {}",
                        o.kind == Operation::Kind::send ? "sending to" : "receiving from",
                        name_of_rank(o.peer), error_text(code));
  }

  // Ranks that can share memory are on one node. A node's number is its lowest rank.
  void find_nodes() {
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    int lowest = rank_;
    MPI_Bcast(&lowest, 1, MPI_INT, 0, local);
    MPI_Comm_free(&local);
    nodes_.resize(static_cast<std::size_t>(size_));
    MPI_Allgather(&lowest, 1, MPI_INT, nodes_.data(), 1, MPI_INT, MPI_COMM_WORLD);
  }

  struct Seen {
    Sign sign;
    Clock::time_point at{};
  };

  int rank_ = 0, size_ = 1;
  std::vector<int> nodes_;
  std::list<Note> notes_;   // in flight
  std::vector<Seen> seen_;  // by rank
  Clock::time_point another_asked_{};
  Pause pause_{true};
  std::atomic<bool> failed_ = false, woken_ = false;
  Monitor<std::string> reason_;
};

}  // namespace

std::unique_ptr<Transport> open_mpi() {
  const MpiLaunch launch = mpi_launch().value_or(MpiLaunch{});  // MPI_Init may change it
  // Between machines, UCX's rendezvous carries large messages in one direction at a time.
  if (launch.local_size < launch.size) ::setenv("UCX_RNDV_THRESH", "inf", 0);
  int provided = 0, size = 1;
  {
    const KeptSignals kept;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
      throw SystemError("MPI could not be started");
  }
  delay_fatal_errors_of_ucx();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1 && launch.size > 1)
    throw UserError(
        "this program was built with {1}, but its {0} processes were started by the mpiexec of "
        "another MPI; use the mpiexec of {1}{2}",
        launch.size, mpi_version(), mpi_version().starts_with("MPICH") ? " (mpiexec.mpich)" : "");
  return std::make_unique<MpiTransport>();
}

bool can_start_mpi() {
  int started = 0;
  MPI_Initialized(&started);
  return started == 0;
}

void close_mpi() {
  closed = true;
  Pause pause(true);
  const bool mpich = mpi_version().starts_with("MPICH");
  const bool left =
      mpich && leave_hydra([&] {
        int arrived = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
        pause();
      });
  if (!left) MPI_Finalize();
}

void abort_mpi(int status) {
  abort_hydra(status);
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

void mpi_allreduce(std::span<float> values, MpiWait wait) {
  const int count = static_cast<int>(values.size());
  if (wait == MpiWait::spins) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    ::sched_yield();
  }
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  // "MPICH Version:\t4.0.2\n…", "Open MPI v4.1.4, package: …"
  const std::string all(text, static_cast<std::size_t>(length));
  const std::size_t number = all.find_first_of("0123456789");
  const std::string name = all.starts_with("MPICH") ? "MPICH" : all.substr(0, all.find(" v"));
  return name + " " + all.substr(number, all.find_first_not_of("0123456789.", number) - number);
}

}  // namespace tandem
