// The second rider: a rank's communication thread. It alone uses the rank's transport, and it works
// off jobs in the order in which the compute thread posts them. All ranks post the same jobs in the
// same order, so the jobs of different ranks find each other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/queue.h"
#include "base/thread.h"
#include "dist/timing/spans.h"
#include "dist/transport/transport.h"

namespace tandem {

class Communication {
 public:
  // `open` makes the transport, on the communication thread; what it throws is thrown here.
  explicit Communication(const std::function<std::unique_ptr<Transport>()>& open);
  // Ends the thread after the jobs that were posted.
  ~Communication();
  Communication(const Communication&) = delete;
  Communication& operator=(const Communication&) = delete;

  // The job's result, or what it throws, goes to `results`, which must outlive it.
  template <class T, class F>
  void post(BlockingQueue<T>& results, F job) {
    jobs_.put([&results, job = std::move(job)]() mutable { results.put_result_of(job); });
  }

  // Runs the job and waits for its result.
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

  // For jobs. (Rank and size may be asked by anyone.)
  Transport& transport() { return *transport_; }
  Spans& spans() { return spans_; }

  // For when the compute thread has failed: ends all waits of the jobs with JobFailed, here and as
  // far as the transport reaches, and returns when no job runs any more.
  void stop(const std::string& reason) {
    transport_->fail(reason);
    call([] {});
  }

 private:
  void work();  // of the thread

  std::unique_ptr<Transport> transport_;
  Spans spans_;
  BlockingQueue<std::function<void()>> jobs_;
  Thread thread_;  // last: starts when all else is there
};

}  // namespace tandem
