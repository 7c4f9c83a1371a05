#include "dist/transport/transport.h"

#include <fmt/format.h>

#include <algorithm>

#include "dist/transport/stall.h"

namespace tandem {
std::string name_of_rank(int rank) {
  return rank == kAnyRank ? "any rank" : fmt::format("rank {}", rank);
}

void Transport::set_stall_timeout(double seconds) {
  stall_timeout_s_ = seconds;
  slice_ = std::min<Clock::duration>(std::chrono::milliseconds(100), from_seconds(seconds / 4));
}

void Transport::await_any(std::span<Request* const> requests, Patience patience) {
  if (!wait_any_until(requests, Clock::now() + slice_)) wait_long(*this, requests, patience);
}

int Transport::wait(Request& request, Patience patience) {
  await(request, patience);
  if (!request) return -1;
  const int other = request->kind == Operation::Kind::send ? request->peer : request->source;
  request.reset();
  return other;
}

void Transport::send_and_wait(int to, Tag tag, std::span<const std::byte> bytes) {
  Request request = send(to, tag, bytes);
  wait(request);
}

int Transport::receive_and_wait(int from, Tag tag, std::span<std::byte> bytes) {
  Request request = receive(from, tag, bytes);
  return wait(request);
}

}  // namespace tandem
