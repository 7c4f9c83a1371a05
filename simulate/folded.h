// A network in which one rank stands for all. If all ranks do the same at the same time, what this
// rank sends to its right neighbour is what its left neighbour sends to it. So a message to the
// rank at some distance arrives from the rank at the same distance on the other side, and one rank
// shows what thousands would do.
#pragma once

#include <memory>

#include "dist/transport/transport.h"

namespace tandem {

// The transport of rank 0, for use in virtual time.
std::unique_ptr<Transport> folded_transport(int ranks);

}  // namespace tandem
