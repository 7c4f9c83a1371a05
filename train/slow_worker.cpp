#include "train/slow_worker.h"

#include <chrono>

#include "train/rules.h"

namespace tandem {

std::optional<SlowRank> parse_slow_rank(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos) return std::nullopt;
  std::string rank = text.substr(0, at), speed = text.substr(at + 1);
  const Rule positive = rules::number("", [](double v) { return v >= 0.001 && v <= 1; });
  if (!rules::whole(0, 1023).complaint(rank).empty() || !positive.complaint(speed).empty())
    return std::nullopt;
  return SlowRank{std::stoi(rank), std::stod(speed)};
}

void SlowWorker::begin_step() {
  in_step_ = true;
  last_ = Clock::now();
}

void SlowWorker::end_step() {
  catch_up(Clock::duration::zero());
  in_step_ = false;
}

// A short sleep lasts longer than asked for, so the difference is kept.
void SlowWorker::catch_up(Clock::duration least) {
  if (!in_step_) return;
  const auto now = Clock::now();
  owed_ += std::chrono::duration_cast<Clock::duration>((now - last_) * more_);
  last_ = now;
  if (owed_ <= least) return;
  sleep_until(now + owed_);
  last_ = Clock::now();
  owed_ -= last_ - now;
}

// Time in the strategy, which may wait, is not computation.
void SlowWorker::before_use(Parameter& parameter) {
  catch_up(std::chrono::milliseconds(1));
  hooks_.before_use(parameter);
  last_ = Clock::now();
}

void SlowWorker::on_grad_ready(Parameter& parameter) {
  catch_up(std::chrono::milliseconds(1));
  hooks_.on_grad_ready(parameter);
  last_ = Clock::now();
}

}  // namespace tandem
