// The speed of an emulated NIC (network card).
#pragma once

#include <string>

namespace tandem {

struct LinkSpeed {
  double bytes_per_s = 0;  // in each direction; 0: not slowed down
  double latency_s = 0;    // one way

  bool limited() const { return bytes_per_s > 0; }
};

// What parse_link() accepts, for messages of the form "must be …".
inline constexpr const char* kLinkForms =
    "none, 1gbe, 10gbe, 25gbe, 100gbe or a rate (1kbit to 10000gbit) with or without a latency "
    "(up to 10s), such as 2.5gbit/80us";

// Accepts none, 1gbe, 10gbe, 25gbe, 100gbe, or RATE[/LATENCY] such as 2.5gbit/80us. Throws
// UserError for anything else.
LinkSpeed parse_link(const std::string& text);

}  // namespace tandem
