// Which server holds what, and in which messages it travels. Blocks go to the servers in turn;
// consecutive blocks of a server make a segment, which is one message each way.
#pragma once

#include <cstdint>
#include <vector>

#include "dist/block.h"

namespace tandem {

inline constexpr std::int64_t kServerSegmentBlocks = 8;  // 64 KB of weights

// The ranks of servers come after those of the workers.
inline int server_rank(int workers, int server) { return workers + server; }

inline std::vector<Segment> segments_of_server(std::int64_t count, int servers, int server) {
  return segments_of_share(count, servers, server, kServerSegmentBlocks);
}

}  // namespace tandem
