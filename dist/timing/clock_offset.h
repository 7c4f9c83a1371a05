// The clocks of different machines start at different times. To compare the times of two ranks, the
// offset between their clocks is measured once.
#pragma once

#include "base/clock.h"
#include "dist/transport/transport.h"

namespace tandem {

// Rank 0's clock minus this rank's clock; zero for ranks on rank 0's machine. All ranks must call
// it.
Clock::duration clock_offset(Transport& transport);

}  // namespace tandem
