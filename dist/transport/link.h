// Slows a transport down to the speed of a network card: every rank seems to be a machine of its
// own, joined to the others by one switch.
//
//   sender's card            switch          receiver's card
//   ┌──────────────┐  frame by frame   ┌──────────────┐
//   │ out: N bytes ├──── latency ─────>│ in: N bytes  ├──> delivered
//   └──────────────┘                   └──────────────┘
//
// Each rank has one card with two directions that do not disturb each other. A direction passes one
// message after the other and takes bytes/rate for each: outbound in the order of sending, inbound
// in the order of arrival. The switch stores and forwards frame by frame, so a message begins to
// arrive when its first frame has left, and a message alone takes
// bytes/rate + frame/rate + latency.
//
// Nothing is delayed on its way: messages travel at once, from the sender's memory into the
// receiver's. Ahead of each goes an announcement, which says when it would have begun to arrive,
// and the receiver hands it out when that time has come. Waiting lasts until a computed time, so
// lateness does not add up.
#pragma once

#include <memory>

#include "dist/transport/link_speed.h"
#include "dist/transport/transport.h"

namespace tandem {

inline constexpr std::size_t kFrameBytes = 1500;

// All ranks must call this together, with the same speed.
std::unique_ptr<Transport> slow_down(std::unique_ptr<Transport> transport, const LinkSpeed& speed);

}  // namespace tandem
