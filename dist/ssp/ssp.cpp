#include "dist/ssp/ssp.h"

#include <algorithm>
#include <limits>

#include "tensor/backend.h"

namespace tandem {
namespace {

const Tag kClockTag = on_channel(Tag::control, 3);

auto bytes_of(std::int64_t& clock) { return std::as_writable_bytes(std::span(&clock, 1)); }

// The gradient of the copy is the worker's own, to which no codec has applied momentum.
Sgd own_optimizer(const StrategyContext& c) {
  return c.optimizer.with_share_of_decay(1.0 / c.workers).with_momentum_of_gradient();
}

}  // namespace

Ssp::Ssp(const StrategyContext& context)
    : PushWorker(context, Answers::none),
      optimizer_(own_optimizer(context)),
      staleness_(context.option("--staleness")),
      clocks_(static_cast<std::size_t>(shards_.servers())),
      received_(static_cast<std::size_t>(shards_.servers())) {}

void Ssp::before_step(std::int64_t t) {
  PushWorker::before_step(t);
  if (seen_ < t - 1 - staleness_) pull(t - 1);
}

void Ssp::step(std::int64_t t) {
  push_gradient(t);
  const Spans::Scope span(c_.spans, SpanKind::update);
  optimizer_.update(t);
}

// `clock`: the last iteration that this worker has pushed.
void Ssp::pull(std::int64_t clock) {
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  const Spans::Scope span(c_.spans, SpanKind::wait);
  backend.wait_for(c_.communication.call([&] {
    Transport& transport = c_.communication.transport();
    const Spans::Scope communicates(c_.communication.spans(), SpanKind::communicate);
    for (std::size_t i = 0; i < clocks_.size(); ++i)
      received_[i] = transport.receive(shards_.first_server() + static_cast<int>(i), kClockTag,
                                       bytes_of(clocks_[i]));
    shards_.begin_pull(*pulled_, c_.parameters.values(), ready);
    tell({Notice::Kind::pull, clock});
    for (Request& received : received_) transport.wait(received, Patience::while_others_work);
    return shards_.end_pull(*pulled_);
  }));
  c_.parameters.values_changed();
  seen_ = std::ranges::min(clocks_);
}

void Ssp::visit(State& state) {
  PushWorker::visit(state);
  state("iteration that the weights have seen", seen_);
}

SspServer::SspServer(const StrategyContext& context)
    : AspServer(context),
      staleness_(context.option("--staleness")),
      clocks_(static_cast<std::size_t>(context.workers)),
      asking_(clocks_.size(), kNothing),
      told_(clocks_.size()),
      sent_(clocks_.size()) {}

void SspServer::take(const Push& push) {
  update(push);
  if (!push.completes) return;
  clocks_[static_cast<std::size_t>(push.worker)] = static_cast<double>(push.iteration);
  answer();
}

void SspServer::asked(int worker, std::int64_t clock) {
  asking_[static_cast<std::size_t>(worker)] = clock;
  answer();
}

// A server without a part of the weights has nothing that could be too old.
std::int64_t SspServer::slowest() const {
  if (!has_segments()) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::ranges::min(clocks_));
}

// A worker may ask before its own last push has come, because the two have different tags.
void SspServer::answer() {
  const std::int64_t slowest = this->slowest();
  for (std::size_t worker = 0; worker < asking_.size(); ++worker) {
    const std::int64_t clock = asking_[worker];
    if (clock == kNothing || slowest < clock - staleness_) continue;
    if (has_segments() && clocks_[worker] < static_cast<double>(clock)) continue;
    asking_[worker] = kNothing;
    transport_.wait(sent_[worker]);
    told_[worker] = slowest;
    sent_[worker] = transport_.send(static_cast<int>(worker), kClockTag, bytes_of(told_[worker]));
    send_all_values(static_cast<int>(worker));
  }
}

void SspServer::finish() {
  for (Request& sent : sent_) transport_.wait(sent);
  AspServer::finish();
}

void SspServer::visit(State& state) {
  for (Request& sent : sent_) transport_.wait(sent);
  AspServer::visit(state);
  state("iterations that the workers have pushed", clocks_);
}

}  // namespace tandem
