// PS-Sync with local aggregation, on a worker. The workers of a node add their gradients before one
// of them, the leader, pushes the sum to the servers. It passes the new weights on to the others.
// README.md has the figure and the cost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "dist/strategy.h"
#include "dist/transport/transport.h"
#include "tensor/staging.h"

namespace tandem {

// Whether --aggregate says so.
bool nodes_first(const StrategyOptions& given);

// The first worker of each node, in the order of their ranks. The servers talk to these alone.
std::vector<int> node_leaders(const Transport& transport, int workers);

class NodeSum : public Strategy {
 public:
  explicit NodeSum(const StrategyContext& context);

  void after_backward(std::int64_t t) override;
  // On which nodes the workers are determines the bits of the sum, so a run cannot continue on
  // others.
  void visit(State& state) override;

 private:
  Transport& transport() const { return c_.communication.transport(); }
  bool leads() const { return transport().rank() == leader_; }
  // The rank that has the new weights of a segment first.
  int source_of(std::size_t segment) const;

  EventPtr exchange(std::int64_t t, const EventPtr& ready);
  void require_finite_gradient(std::int64_t t, const EventPtr& ready);
  void begin_pull(const EventPtr& ready);
  void follow();
  void lead();

  // What the leader does with a segment.
  void begin_receive(std::size_t segment);
  Request* first_missing(std::size_t segment);
  void add(std::size_t segment);
  void push(std::size_t segment);
  void pass_on(std::size_t segment);
  // The members' gradients are received here.
  std::span<Request> received(std::size_t segment);
  std::span<std::byte> memory_of(std::size_t segment, std::size_t member);

  StrategyContext c_;
  int servers_;
  int leader_ = 0;
  std::vector<int> members_;  // the other workers of the node, in the order of their ranks
  std::vector<Segment> segments_;
  std::size_t ahead_;  // for how many segments the members' gradients are received at a time

  std::unique_ptr<Compressor> uncompressed_;
  std::unique_ptr<Staging> gradient_, weights_;
  std::vector<std::size_t> places_;  // where each segment begins in packed_
  HugePages received_memory_, packed_;
  // Requests use the memory above, so they are destroyed first.
  std::vector<Request> received_;         // by segment modulo ahead_, then by member
  std::vector<Request> pushed_, pulled_;  // by segment
  std::vector<Request> passed_on_;        // by segment, then by member
};

}  // namespace tandem
