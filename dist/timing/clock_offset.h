// Clocks of different machines begin at different times. To compare what two ranks have measured,
// their clocks are set against each other once.
#pragma once

#include "base/clock.h"
#include "dist/transport/transport.h"

namespace tandem {

// What this rank's clock must be moved by to show the time of rank 0's. All ranks must call it
// together. Zero for ranks that share a machine with rank 0.
Clock::duration clock_offset(Transport& transport);

}  // namespace tandem
