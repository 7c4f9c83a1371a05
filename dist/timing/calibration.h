// Measures the constants of the timing model on the transport in use, in a fraction of a second.
#pragma once

#include "dist/compress/compressor.h"
#include "dist/timing/model.h"
#include "dist/transport/transport.h"

namespace tandem {

// Ranks 0 … ranks-1 must all call it. All get the same result, the mean over the ranks. It includes
// the time of compression only if the host compresses (`on_host`).
NetworkCost calibrate(Transport& transport, int ranks, const Compressor& compressor, bool on_host);

}  // namespace tandem
