// Measures what the timing model needs to know of the transport in use, in a fraction of a second.
#pragma once

#include "dist/compress/compressor.h"
#include "dist/timing/model.h"
#include "dist/transport/transport.h"

namespace tandem {

// Ranks 0 … ranks-1 call it together; all get the same answer, the mean over the ranks. Gradients
// are compressed on the host, or else where they are: then that is not in the answer.
NetworkCost calibrate(Transport& transport, int ranks, const Compressor& compressor, bool on_host);

}  // namespace tandem
