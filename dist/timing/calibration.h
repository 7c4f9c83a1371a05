// Measures the constants of the timing model on the transport in use, in a fraction of a second.
#pragma once

#include "dist/compress/compressor.h"
#include "dist/timing/model.h"
#include "dist/transport/transport.h"

namespace tandem {

// Ranks 0 … ranks-1 must all call it; all get the same result, the mean over the ranks. It includes
// the time of compression if that is done `on_host`, and not if a device does it.
NetworkCost calibrate(Transport& transport, int ranks, const Compressor& compressor, bool on_host);

}  // namespace tandem
