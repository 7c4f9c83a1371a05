#include "train/run_ahead.h"

#include "tensor/device_queue.h"

namespace tandem {
namespace {

constexpr std::size_t kAhead = 2;

}  // namespace

RunAhead::RunAhead(const Device& device, Spans& spans)
    : device_(device), host_(host_of(device)), spans_(spans) {}

void RunAhead::add(std::int64_t t, const Tensor& loss, double share) {
  DeviceQueue& queue = device_.queue();
  Queued queued{t, Tensor::empty({}, loss.dtype(), host_), share, nullptr};
  queue.read_later(loss, queued.loss);
  queued.done = queue.record_event();
  queued_.push_back(std::move(queued));
}

std::vector<RunAhead::Done> RunAhead::take_done(bool all) {
  const std::size_t ahead = all || device_.is_cpu() ? 0 : kAhead;
  std::vector<Done> taken;
  for (; queued_.size() > ahead; queued_.pop_front()) {
    const Queued& oldest = queued_.front();
    if (oldest.done) oldest.done->wait();
    spans_.settle(oldest.iteration);
    taken.push_back({oldest.iteration, oldest.share * oldest.loss.item(), Clock::now()});
  }
  return taken;
}

}  // namespace tandem
