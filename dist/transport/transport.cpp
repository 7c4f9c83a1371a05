#include "dist/transport/transport.h"

#include <fmt/format.h>

namespace tandem {
std::string name_of_rank(int rank) {
  return rank == kAnyRank ? "any rank" : fmt::format("rank {}", rank);
}

void Transport::await(Request& request, double seconds) {
  if (!request) return;
  Request* const one[] = {&request};
  if (!wait_any_until(one, Clock::now() + from_seconds(seconds)))
    throw SystemError("{} for {:g} s (--stall-timeout)",
                      request->kind == Operation::Kind::send
                          ? name_of_rank(request->peer) + " has not taken what was sent to it"
                          : "nothing has come from " + name_of_rank(request->peer),
                      seconds);
}

int Transport::wait(Request& request, double seconds) {
  await(request, seconds);
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
