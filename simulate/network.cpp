#include "simulate/network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/phantom_memory.h"
#include "dist/transport/link.h"
#include "simulate/network_parts.h"

namespace tandem {

int NetworkShape::nodes() const {
  const int hosts = guests_from > 0 ? guests_from : ranks;
  return (hosts + ranks_per_node - 1) / ranks_per_node;
}

int NetworkShape::node_of(int rank) const {
  return guests_from > 0 && rank >= guests_from ? (rank - guests_from) % nodes()
                                                : rank / ranks_per_node;
}

SimulatedNetwork::SimulatedNetwork(const NetworkShape& shape) : shape_(shape) {
  const int simulated = shape.one_for_all ? 1 : shape.ranks;
  for (int rank = 0; rank < simulated; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    inner_.push_back(std::make_unique<Nic>(Nic{.speed = shape.inner}));
  }
  for (int node = 0; node < (shape.one_for_all ? 1 : shape.nodes()); ++node)
    outer_.push_back(std::make_unique<Nic>(Nic{.speed = shape.link, .noted = node == 0}));
  for (const auto& [rank, speed] : shape.other_links)
    outer_.at(static_cast<std::size_t>(shape.node_of(rank)))->speed = speed;
}

SimulatedNetwork::~SimulatedNetwork() = default;

void SimulatedNetwork::fail(const std::string& reason) {
  if (!std::exchange(failed_, true)) reason_ = reason;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) wake(static_cast<int>(rank));
}

void SimulatedNetwork::wake(int rank) {
  VirtualTime::here()->wake(ranks_[static_cast<std::size_t>(rank)]->waiting);
}

// The NIC through which a rank talks to another one.
SimulatedNetwork::Nic& SimulatedNetwork::nic(int rank, int peer) {
  const int node = shape_.node_of(rank);
  const bool shares = shape_.ranks_per_node > 1 || shape_.guests_from > 0;
  if (shares && node == shape_.node_of(peer)) return *inner_[static_cast<std::size_t>(rank)];
  return *outer_[static_cast<std::size_t>(node)];
}

void SimulatedNetwork::send(SendOperation& operation, int to, std::size_t bytes) {
  if (failed_) throw JobFailed(reason_);
  const int from = operation.rank;
  if (unused_.empty()) unused_.push_back(messages_.emplace_back(new Message).get());
  Message& message = *unused_.back();
  unused_.pop_back();
  message = {.network = this,
             .from = shape_.one_for_all ? shape_.ranks - to : from,
             .to = shape_.one_for_all ? 0 : to,
             .tag = operation.tag,
             .bytes = bytes,
             .send = &operation,
             .number = operations_++};
  message.out = &nic(from, to);
  message.in = shape_.one_for_all ? message.out : &nic(to, from);
  operation.message = &message;

  const LinkSpeed &out = message.out->speed, &in = message.in->speed;
  const auto latency = from_seconds(std::max(out.latency_s, in.latency_s));
  const auto begin = std::max(Clock::now(), message.out->out_free);
  message.out->out_free = begin + message.out->passing_time(bytes);
  const std::size_t frame = std::min(bytes, kFrameBytes);
  message.arrival = begin + message.out->passing_time(frame) + latency;
  message.all_there = message.out->out_free + latency + message.in->passing_time(frame);
  if (notes_use_ && message.out->noted && bytes > 0)
    use_.push_back({true, begin, message.out->out_free});

  message.leaves = message.out->out_free;
  message.out->out.push_back(&message);
  if (message.out->out.size() == 1) begin_to_send(message);

  auto& queues = ranks_[static_cast<std::size_t>(message.to)]->of(message.tag);
  if (ReceiveOperation* receive = queues.take_receive(message.from))
    match(message, *receive);
  else
    queues.messages[message.from].push_back(&message);
}

// The content is there at once. Only the time is missing.
void SimulatedNetwork::match(Message& message, ReceiveOperation& receive) {
  require(shape_.one_for_all || message.bytes <= receive.bytes,
          "rank {} sent {} bytes to rank {}, which expects {}", message.from, message.bytes,
          message.to, receive.bytes);
  // If one rank stands for all: their shares differ by up to a block. A message is then as long as
  // its receiver expects.
  receive.bytes = std::min(message.bytes, receive.bytes);
  receive.source = message.from;
  receive.message = &message;
  message.receive = &receive;
  message.matched = true;
  if (SendOperation* send = message.send) {
    send->matched = true;
    if (receive.in_place) {
      receive.data = send->memory;
      receive.owner = send->owner;
      receive.lender = send;
      send->borrower = &receive;
    } else if (!is_phantom(receive.memory) && receive.bytes > 0) {
      std::memcpy(receive.memory, send->memory, receive.bytes);
    }
    if (send->awaited && send->done()) wake(send->rank);
  }
  if (message.complete) complete(message);
}

// Its NIC is free for it.
void SimulatedNetwork::begin_to_send(Message& message) {
  VirtualTime& time = *VirtualTime::here();
  time.schedule(
      message.leaves,
      [](void* m) { static_cast<Message*>(m)->network->leave(*static_cast<Message*>(m)); },
      &message);
  time.schedule(
      message.arrival,
      [](void* m) { static_cast<Message*>(m)->network->arrive(*static_cast<Message*>(m)); },
      &message);
}

void SimulatedNetwork::leave(Message& message) {
  auto& waiting = message.out->out;
  waiting.pop_front();
  if (!waiting.empty()) begin_to_send(*waiting.front());
  message.left = true;
  if (SendOperation* send = message.send) {
    send->left = true;
    if (send->awaited && send->done()) wake(send->rank);
  }
  release(message);
}

// The NIC receives messages in the order of arrival.
void SimulatedNetwork::arrive(Message& message) {
  Nic& nic = *message.in;
  const auto begin = std::max(nic.in_free, message.arrival);
  nic.in_free = begin + nic.passing_time(message.bytes);
  if (notes_use_ && nic.noted && message.bytes > 0) use_.push_back({false, begin, nic.in_free});
  message.completes = std::max(nic.in_free, message.all_there);
  // A message of a slow sender may be complete after a later one.
  if (!nic.in.empty() && nic.in.back()->completes > message.completes) return expect(message);
  nic.in.push_back(&message);
  if (nic.in.size() == 1) expect(message);
}

void SimulatedNetwork::expect(Message& message) {
  VirtualTime::here()->schedule(
      message.completes,
      [](void* m) { static_cast<Message*>(m)->network->all_in(*static_cast<Message*>(m)); },
      &message);
}

void SimulatedNetwork::all_in(Message& message) {
  auto& waiting = message.in->in;
  if (!waiting.empty() && waiting.front() == &message) {
    waiting.pop_front();
    if (!waiting.empty()) expect(*waiting.front());
  }
  complete(message);
}

void SimulatedNetwork::complete(Message& message) {
  message.complete = true;
  if (ReceiveOperation* receive = message.receive) {
    receive->is_done = true;
    receive->message = nullptr;
    message.receive = nullptr;
    if (receive->awaited) wake(receive->rank);
  }
  release(message);
}

void SimulatedNetwork::release(Message& message) {
  if (!message.left || !message.complete || !message.matched) return;
  if (message.send) message.send->message = nullptr;
  unused_.push_back(&message);
}

}  // namespace tandem
