// Slows a transport down to the speed of a NIC (network card), as if every rank were a separate
// machine, all connected to one switch.
//
//   sender's NIC             switch          receiver's NIC
//   ┌──────────────┐  frame by frame   ┌──────────────┐
//   │ out: N bytes ├──── latency ─────>│ in: N bytes  ├──> delivered
//   └──────────────┘                   └──────────────┘
//
// Each rank has one NIC with two independent directions. Each direction passes one message after
// the other and takes bytes/rate for each: outbound in the order of sending, inbound in the order
// of arrival. The switch stores and forwards frame by frame, so a message begins to arrive when its
// first frame has left and the latency has passed. A single message takes bytes/rate + frame/rate +
// latency.
//
// Messages are not delayed in transit: each is copied at once from the sender's memory to the
// receiver's. An announcement travels ahead of it and says when it would have begun to arrive; the
// receiver delivers it at that time. Waits last until a computed time, so delays do not accumulate.
#pragma once

#include <memory>

#include "dist/transport/link_speed.h"
#include "dist/transport/transport.h"

namespace tandem {

inline constexpr std::size_t kFrameBytes = 1500;

// All ranks must call this, with the same speed.
std::unique_ptr<Transport> slow_down(std::unique_ptr<Transport> transport, const LinkSpeed& speed);

}  // namespace tandem
