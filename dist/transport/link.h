// Slows a transport down to the speed of NICs (network cards), as if every node were a separate
// machine, all connected to one switch.
//
//   sender's NIC             switch          receiver's NIC
//   ┌──────────────┐  frame by frame   ┌──────────────┐
//   │ out: N bytes ├──── latency ─────>│ in: N bytes  ├──> delivered
//   └──────────────┘                   └──────────────┘
//
// Each node has one NIC with two independent directions. Each direction carries one message at a
// time and takes bytes/rate for each: outbound in the order of sending, inbound in the order of
// arrival. By default a node is a rank. Ranks that are threads can also share nodes: messages
// within a node do not pass its NIC and are not slowed down. The switch stores and forwards frame
// by frame. So a message begins to arrive one latency after its first frame has left. A single
// message takes bytes/rate + frame/rate + latency.
//
// The transport below sends each message without delay. An announcement precedes the message and
// says when it would begin to arrive. The receiver computes from that when the message would be
// complete, and delivers it then. Waits last until a computed time, so delays do not accumulate.
#pragma once

#include <memory>

#include "dist/transport/link_speed.h"
#include "dist/transport/nic.h"
#include "dist/transport/transport.h"

namespace tandem {

// How many bytes a sender should have in flight, if it should have `below` without the link.
std::size_t bytes_in_flight(const LinkSpeed& speed, std::size_t below);
// How many bytes are on their way during one latency.
std::size_t latency_bytes(const LinkSpeed& speed);

// All ranks must call this, with the same speed. Without `nics`, every rank has a NIC of its own.
// With them, the ranks of each node share one, for which they must be threads of one process; the
// NICs must outlive the transport.
std::unique_ptr<Transport> slow_down(std::unique_ptr<Transport> transport, const LinkSpeed& speed,
                                     Nics* nics = nullptr);

}  // namespace tandem
