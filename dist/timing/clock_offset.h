// The clocks of different machines start at different times. To compare the times of two ranks, the
// offset between their clocks is measured once.
#pragma once

#include "base/clock.h"
#include "dist/transport/transport.h"

namespace tandem {

// What to add to this rank's clock to get rank 0's. All ranks must call it. Zero for ranks on rank
// 0's machine.
Clock::duration clock_offset(Transport& transport);

}  // namespace tandem
