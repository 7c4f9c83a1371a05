// What a simulated network consists of, for its own sources: network.cpp moves messages, and
// simulated_transport.cpp is what a rank sees of it.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/virtual_time.h"
#include "simulate/network.h"

namespace tandem {

struct SimulatedNetwork::Nic {
  LinkSpeed speed;
  bool noted = false;                   // use() is about it
  Clock::time_point out_free, in_free;  // when each direction is free again
  // What it sends and receives, the current message first. Only that one has events: of the
  // hundreds of thousands that may wait, most would make the queue of events long.
  std::deque<Message*> out, in;

  Clock::duration passing_time(std::size_t bytes) const {
    return speed.limited() ? from_seconds(static_cast<double>(bytes) / speed.bytes_per_s)
                           : Clock::duration{};
  }
};

// From when it is sent until it has left, is complete at its receiver and has been matched with a
// receive.
struct SimulatedNetwork::Message {
  SimulatedNetwork* network = nullptr;
  int from = 0, to = 0;
  Tag tag{};
  std::size_t bytes = 0;
  Nic *out = nullptr, *in = nullptr;
  Clock::time_point arrival;    // of its first frame
  Clock::time_point all_there;  // not before all of it has left and come over
  Clock::time_point leaves, completes;
  SendOperation* send = nullptr;        // null once that is destroyed
  ReceiveOperation* receive = nullptr;  // null until it is matched
  std::uint64_t number = 0;             // in the order of sending
  bool left = false, complete = false, matched = false;
};

struct SimulatedNetwork::SendOperation final : Operation {
  SendOperation(int to, Tag what, std::span<const std::byte> bytes_of)
      : Operation(Kind::send, to, what, bytes_of.size()), memory(bytes_of.data()) {}
  ~SendOperation() override;

  bool done() const { return left && matched && !borrower; }

  const std::byte* memory;
  Message* message = nullptr;  // null once that has ended
  int rank = 0;
  bool left = false, matched = false, awaited = false;
  ReceiveOperation* borrower = nullptr;  // a receive that reads the message in the sender's memory
};

struct SimulatedNetwork::ReceiveOperation final : Operation {
  ReceiveOperation(int from, Tag what, std::span<std::byte> bytes_of, bool reads_in_place,
                   SimulatedNetwork& of, int begun_by)
      : Operation(Kind::receive, from, what, bytes_of.size()),
        memory(bytes_of.data()),
        in_place(reads_in_place),
        network(of),
        rank(begun_by) {
    data = memory;
  }
  ~ReceiveOperation() override;

  std::byte* memory;
  bool in_place;
  SimulatedNetwork& network;
  int rank;
  std::uint64_t number = 0;  // in the order of the calls
  bool is_done = false, awaited = false;
  Message* message = nullptr;       // once it is matched, until it is done
  SendOperation* lender = nullptr;  // the send whose memory it reads
};

struct SimulatedNetwork::Rank {
  // What has no counterpart yet, of one tag. By the sender, oldest first.
  struct Queues {
    std::unordered_map<int, std::deque<Message*>> messages;
    std::unordered_map<int, std::deque<ReceiveOperation*>> receives;  // also from kAnyRank

    // The oldest message from this rank, which leaves its queue; null if there is none.
    Message* take_message(int from);
    // The same for the receive that a message from this rank belongs to.
    ReceiveOperation* take_receive(int from);
  };

  Queues& of(Tag tag) {
    const auto index = static_cast<std::size_t>(tag);
    if (index >= queues.size()) queues.resize(index + 1);
    return queues[index];
  }

  std::vector<Queues> queues;
  VirtualTime::Waiting waiting;  // its communication thread
  bool woken = false;
  Sign sign{Sign::State::silent};
};

}  // namespace tandem
