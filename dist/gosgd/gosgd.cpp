#include "dist/gosgd/gosgd.h"

namespace tandem {

GoSgd::GoSgd(const StrategyContext& context)
    : Gossip(context),
      probability_(context.number("--gossip-p")),
      random_(Random(context.seed, Purpose::gossip).split(static_cast<std::uint64_t>(rank_))),
      share_(1.0 / context.workers) {}

void GoSgd::before_step(std::int64_t t) {
  open_mail(t);
  while (const auto letter = mail().look()) mix_in(*letter);
}

void GoSgd::after_backward(std::int64_t t) {
  {
    const Spans::Scope span(c_.spans, SpanKind::update);
    c_.optimizer.update(t);
  }
  Random random = random_.split(static_cast<std::uint64_t>(t));
  if (random.uniform() >= probability_) return;
  share_ /= 2;
  Letter letter = copy_of_weights(t);
  const auto others = static_cast<std::uint64_t>(c_.workers - 1);
  letter.peer = (rank_ + 1 + static_cast<int>(random.below(others))) % c_.workers;
  mail().send(std::move(letter));
}

void GoSgd::mix_in(const Letter& letter) {
  const double sum = share_ + letter.share;
  mix(share_ / sum, letter.share / sum, letter.values);
  share_ = sum;
}

void GoSgd::visit(State& state) {
  Gossip::visit(state);
  state("share of the mean", share_);
}

}  // namespace tandem
