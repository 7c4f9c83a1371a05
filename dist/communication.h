// The second rider: a rank's communication thread. It alone uses the rank's transport. It runs jobs
// in the order in which the compute thread posts them. All ranks post the same jobs in the same
// order, so each job meets its counterparts on the other ranks.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"

namespace tandem {

class Communication {
 public:
  // Calls `open` on the communication thread to make the transport, and rethrows its exceptions.
  explicit Communication(const std::function<std::unique_ptr<Transport>()>& open);
  // Runs the jobs that are already posted, then ends the thread.
  ~Communication();
  Communication(const Communication&) = delete;
  Communication& operator=(const Communication&) = delete;

  // Queues a job. Its result or its exception goes to `results`, which must outlive the job. If a
  // job ends with JobFailed because an earlier one has failed, the earlier one's exception takes
  // its place: the compute thread may be waiting for the later one.
  template <class T, class F>
  void post(BlockingQueue<T>& results, F job) {
    jobs_.put([this, &results, job = std::move(job)]() mutable {
      results.put_result_of([&] { return run(job); });
    });
  }

  // Runs the job on the communication thread and returns its result.
  template <class F>
  auto call(F&& job) {
    using T = decltype(job());
    if constexpr (std::is_void_v<T>) {
      call([&] { return job(), std::monostate(); });
    } else {
      BlockingQueue<T> result;
      post(result, std::ref(job));
      return result.take();
    }
  }

  // Replaces the transport by wrap(transport), on the communication thread.
  void wrap(const std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>& wrap) {
    call([&] { transport_ = wrap(std::move(transport_)); });
  }

  // For jobs only, except rank() and size(), which any thread may call.
  Transport& transport() { return *transport_; }
  Spans& spans() { return spans_; }
  // For jobs: waits for one of the requests or for the compute thread (Transport::wake()), but not
  // long. Shows the other ranks from time to time that this one works. Nothing wakes this thread
  // when a GPU has computed what the caller waits for, so then the wait is short.
  void wait_a_while(std::span<Request* const> requests, bool gpu_computes = false);

  // Call it when the compute thread has failed. Ends all waits of jobs with JobFailed, on this rank
  // and on those that the transport can reach, and returns when no job is running.
  void stop(const std::string& reason) {
    transport_->fail(reason);
    call([] {});
  }

 private:
  void work();  // the thread's loop
  // Shows the other ranks that this one is alive while it computes, if it is time.
  void show_work();

  template <class F>
  auto run(F& job) {
    try {
      return job();
    } catch (const JobFailed&) {
      if (failure_) std::rethrow_exception(failure_);
      throw;
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      throw;
    }
  }

  std::unique_ptr<Transport> transport_;
  Spans spans_;
  Clock::time_point next_sign_ = Clock::now();
  std::exception_ptr failure_;  // of the first job that failed by itself
  BlockingQueue<std::function<void()>> jobs_;
  Thread thread_;  // last: starts when the other members exist
};

}  // namespace tandem
