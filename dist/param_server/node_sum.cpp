#include "dist/param_server/node_sum.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "dist/block.h"
#include "dist/finite.h"
#include "dist/param_server/shards.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// By worker: the number of its node. Nodes are numbered in the order of their first workers.
std::vector<std::int64_t> nodes_of(const Transport& transport, int workers) {
  std::vector<int> seen;
  std::vector<std::int64_t> nodes;
  for (int worker = 0; worker < workers; ++worker) {
    const int node = transport.node(worker);
    const auto found = std::ranges::find(seen, node);
    nodes.push_back(found - seen.begin());
    if (found == seen.end()) seen.push_back(node);
  }
  return nodes;
}

}  // namespace

bool nodes_first(const StrategyOptions& given) {
  enum class Aggregate : std::int64_t { servers, nodes_first };
  return static_cast<Aggregate>(option_value(given, "--aggregate")) == Aggregate::nodes_first;
}

std::vector<int> node_leaders(const Transport& transport, int workers) {
  const std::vector<std::int64_t> nodes = nodes_of(transport, workers);
  std::vector<int> leaders;
  for (int worker = 0; worker < workers; ++worker)
    if (nodes[static_cast<std::size_t>(worker)] == std::ssize(leaders)) leaders.push_back(worker);
  return leaders;
}

NodeSum::NodeSum(const StrategyContext& context)
    : c_(context),
      servers_(static_cast<int>(context.option("--servers"))),
      segments_(segments_for_servers(context.parameters.values().count(), servers_,
                                     PushTime::after_backward)),
      ahead_(std::min(kSegmentsAhead, segments_.size())),
      uncompressed_(make_none()),
      gradient_(stage_for_servers(context, *uncompressed_)),
      weights_(stage_for_servers(context, *uncompressed_)),
      pushed_(segments_.size()),
      pulled_(segments_.size()) {
  const int own = transport().rank();
  std::vector<int> ranks;
  for (int worker = 0; worker < c_.workers; ++worker)
    if (transport().node(worker) == transport().node(own)) ranks.push_back(worker);
  leader_ = ranks.front();
  if (!leads()) return;
  members_.assign(ranks.begin() + 1, ranks.end());
  received_.resize(ahead_ * members_.size());
  passed_on_.resize(segments_.size() * members_.size());
  if (!received_.empty())
    received_memory_ = c_.compressor.memory(
        received_.size() *
        uncompressed_->bytes(std::ranges::max(segments_, {}, &Segment::count).count));
  if (c_.compressor.lossless()) return;
  places_ = places_of(segments_, c_.compressor.packing(), kBlock);
  packed_ = c_.compressor.memory(places_.back());
}

void NodeSum::after_backward(std::int64_t t) {
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  {
    const Spans::Scope span(c_.spans, SpanKind::wait);
    backend.wait_for(c_.communication.call([&] { return exchange(t, ready); }));
  }
  c_.parameters.values_changed();
}

void NodeSum::visit(State& state) {
  const std::vector<std::int64_t> now = nodes_of(transport(), c_.workers);
  std::vector<double> saved(now.begin(), now.end());
  state("nodes of the workers", saved);
  for (std::size_t worker = 0; worker < now.size(); ++worker)
    if (worker >= saved.size() || saved[worker] != static_cast<double>(now[worker]))
      throw UserError(
          "the run was saved with its workers on other nodes (worker {} is now on node {}); "
          "--aggregate nodes-first needs the same nodes, see --ranks-per-node",
          worker, now[worker]);
}

// ---- jobs of the communication thread

int NodeSum::source_of(std::size_t segment) const {
  if (!leads()) return leader_;
  return c_.workers + static_cast<int>(segment) % servers_;
}

EventPtr NodeSum::exchange(std::int64_t t, const EventPtr& ready) {
  Spans& spans = c_.communication.spans();
  spans.set_iteration(t);
  gradient_->begin(c_.parameters.gradients(), ready, segments_);
  require_finite_gradient(t, ready);

  const Spans::Scope span(spans, SpanKind::communicate);
  begin_pull(ready);
  leads() ? lead() : follow();
  for (std::vector<Request>* sent : {&pushed_, &passed_on_})
    for (Request& request : *sent) transport().wait(request);
  gradient_->finish();
  return weights_->finish();
}

// As in finite.h. On the CPU, the compressor looks at the values: it knows that they have no
// content in a simulation, and the staging, which does not compress, does not.
void NodeSum::require_finite_gradient(std::int64_t t, const EventPtr& ready) {
  std::optional<Spans::Scope> waits;
  if (ready) waits.emplace(c_.communication.spans(), SpanKind::wait);
  const Tensor& gradient = c_.parameters.gradients();
  const bool finite = gradient.device().is_cpu() ? c_.compressor.finite(gradient.span<float>())
                                                 : gradient_->finite();
  if (!finite) require_finite(c_.parameters, gradient_->values(), t);
}

void NodeSum::begin_pull(const EventPtr& ready) {
  weights_->begin(c_.parameters.values(), ready, segments_, Staging::Fill::by_host);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment)
    pulled_[segment] =
        transport().receive(source_of(segment), Tag::pull, weights_->packed(segment).whole());
}

void NodeSum::follow() {
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    gradient_->wait(segment);
    pushed_[segment] = transport().send(leader_, Tag::push, gradient_->packed(segment).whole());
  }
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    transport().wait(pulled_[segment]);
    weights_->put(segment, weights_->packed(segment));
  }
}

// Pushes sums while weights of earlier segments come back, so that the NIC is busy in both
// directions. Weights come first: the members wait for them.
void NodeSum::lead() {
  for (std::size_t segment = 0; segment < ahead_; ++segment) begin_receive(segment);
  std::size_t summed = 0, answered = 0;
  std::vector<Request*> awaited;
  while (answered < segments_.size()) {
    Request* const missing = summed < segments_.size() ? first_missing(summed) : nullptr;
    awaited.clear();
    if (missing) awaited.push_back(missing);
    if (answered < summed) awaited.push_back(&pulled_[answered]);
    if (missing || summed == segments_.size()) {
      transport().await_any(awaited, Patience::until_timeout);
    } else if (awaited.empty() || !transport().wait_any_until(awaited, Clock::now())) {
      add(summed);
      push(summed);
      if (summed + ahead_ < segments_.size()) begin_receive(summed + ahead_);
      ++summed;
    }
    for (; answered < summed && transport().done(pulled_[answered]); ++answered) pass_on(answered);
  }
}

std::span<Request> NodeSum::received(std::size_t segment) {
  return std::span(received_).subspan(segment % ahead_ * members_.size(), members_.size());
}

std::span<std::byte> NodeSum::memory_of(std::size_t segment, std::size_t member) {
  const std::size_t room = received_memory_.span().size() / received_.size();
  return received_memory_.span().subspan((segment % ahead_ * members_.size() + member) * room,
                                         uncompressed_->bytes(segments_[segment].count));
}

void NodeSum::begin_receive(std::size_t segment) {
  for (std::size_t member = 0; member < members_.size(); ++member)
    received(segment)[member] =
        transport().receive_in_place(members_[member], Tag::push, memory_of(segment, member));
}

// All members' gradients are needed, so waiting for one of them at a time is enough. If it does not
// come, its sender is the one to name.
Request* NodeSum::first_missing(std::size_t segment) {
  for (Request& request : received(segment))
    if (!transport().done(request)) return &request;
  return nullptr;
}

// In f32 and in the order of the ranks: the leader's own gradient, then the members'.
void NodeSum::add(std::size_t segment) {
  constexpr std::int64_t kPart = 8 * kBlock;
  gradient_->wait(segment);
  const Spans::Scope span(c_.communication.spans(), SpanKind::sum);
  auto* sum = reinterpret_cast<float*>(gradient_->packed(segment).whole().data());
  for (Request& request : received(segment)) {
    const auto* other = reinterpret_cast<const float*>(request->message().data());
    run_ranges(transport().helpers(), segments_[segment].count, kPart,
               [&](std::int64_t begin, std::int64_t end) {
                 const auto count = static_cast<std::size_t>(end - begin);
                 c_.compressor.add_values({other + begin, count}, {sum + begin, count});
               });
    request.reset();
  }
}

void NodeSum::push(std::size_t segment) {
  std::span<std::byte> bytes = gradient_->packed(segment).whole();
  if (!c_.compressor.lossless()) {
    const Spans::Scope span(c_.communication.spans(), SpanKind::compress);
    const auto count = static_cast<std::size_t>(segments_[segment].count);
    const std::span<const float> sum(reinterpret_cast<const float*>(bytes.data()), count);
    bytes = packed_.span().subspan(places_[segment], c_.compressor.bytes(segments_[segment].count));
    c_.compressor.compress(sum, bytes);
  }
  pushed_[segment] = transport().send(source_of(segment), Tag::push, bytes);
}

void NodeSum::pass_on(std::size_t segment) {
  pulled_[segment].reset();
  const Pieces weights = weights_->packed(segment);
  for (std::size_t member = 0; member < members_.size(); ++member)
    passed_on_[segment * members_.size() + member] =
        transport().send(members_[member], Tag::pull, weights.whole());
  weights_->put(segment, weights);
}

}  // namespace tandem
