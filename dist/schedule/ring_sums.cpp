#include "dist/schedule/ring_sums.h"

#include <utility>

#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr std::size_t kToldAhead = 2;  // including the current one

}  // namespace

RingSums::RingSums(const StrategyContext& context, const std::vector<Slice>& slices)
    : SliceSums(context) {
  for (const Slice& slice : slices) {
    if (slice.stage == stages_.size()) stages_.push_back({.first_part = parts_.size()});
    ++stages_.at(slice.stage).parts;
    parts_.push_back({slice, GradientSum(c_, slice.range, true), {}});
  }
}

void RingSums::begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) {
  const StageState& s = stages_.at(stage);
  for (std::size_t i = s.first_part; i < s.first_part + s.parts; ++i) {
    Part& part = parts_[i];
    const BlockRange& range = part.slice.range;
    part.gradient = {iteration, c_.parameters.gradients().view(range.first(), {range.count}),
                     ready};
    part.sum.begin(part.gradient);
  }
  begun_.put(stage);
  has_begun(stages_.size());
}

// All sums of one iteration.
void RingSums::run() {
  for (StageState& stage : stages_) stage.left = stage.parts;
  for (std::size_t i = 0; i < parts_.size(); ++i) sum(transport_.rank() == 0 ? choose() : hear());
}

// Waits for the compute thread until `enough()`.
template <class Enough>
void RingSums::take_begun(const Enough& enough) {
  const Spans::Scope span(c_.communication.spans(), SpanKind::wait);
  for (;;) {
    while (begun_.wait_until(Clock::now())) {
      const StageState& stage = stages_[begun_.take()];
      for (std::size_t i = stage.first_part; i < stage.first_part + stage.parts; ++i) {
        parts_[i].begun = true;
        open_.insert({parts_[i].slice.rank, i});
      }
    }
    if (enough()) return;
    c_.communication.wait_a_while({});
  }
}

// The first worker's next slice. The other workers are told it, and the one after it if that is
// ready, too.
std::size_t RingSums::choose() {
  take_begun([&] { return !open_.empty() || !told_.empty(); });
  while (told_.size() < kToldAhead && !open_.empty()) {
    Told& told = told_.emplace_back(Told{open_.begin()->second, {}});
    open_.erase(open_.begin());
    for (int worker = 1; worker < c_.workers; ++worker)
      told.requests.push_back(
          transport_.send(worker, Tag::push, std::as_bytes(std::span(&told.part, 1))));
  }
  Told& next = told_.front();
  for (Request& request : next.requests) transport_.wait(request);
  const std::size_t part = next.part;
  told_.pop_front();
  return part;
}

// The slice that the first worker has chosen.
std::size_t RingSums::hear() {
  Request told = transport_.receive(0, Tag::push, std::as_writable_bytes(std::span(&heard_, 1)));
  transport_.wait(told, Patience::while_others_work);
  require(heard_ < parts_.size(), "rank 0 has chosen slice {} of {}", heard_, parts_.size());
  take_begun([&] { return parts_[heard_].begun; });
  return heard_;
}

void RingSums::sum(std::size_t number) {
  Part& part = parts_[number];
  part.sum(part.gradient);
  part.begun = false;
  open_.erase({part.slice.rank, number});
  StageState& stage = stages_[part.slice.stage];
  stage.ready.push_back(std::move(part.gradient.ready));
  if (--stage.left == 0) summed_.put({part.slice.stage, std::exchange(stage.ready, {})});
}

}  // namespace tandem
