// Measures whether an emulated link reaches its rate: one stream, a ring, and many senders to one
// receiver.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "dist/launch.h"
#include "dist/transport/collectives.h"
#include "dist/transport/mpi_launch.h"
#include "train/app.h"
#include "train/command_line.h"

using namespace tandem;

namespace {

struct Options {
  std::string link = "1gbe";
  std::int64_t bytes = 1 << 20;
  int messages = 40;
};

// Who sends to whom. Every pair sends the same number of messages.
struct Pattern {
  const char* name;
  int ranks;
  std::vector<std::pair<int, int>> pairs;
  int busiest;  // streams through the busiest NIC (network card)
};

const Pattern kPatterns[] = {
    {"one stream", 2, {{0, 1}}, 1},
    {"ring of 4", 4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, 1},
    {"4 to 1", 5, {{1, 0}, {2, 0}, {3, 0}, {4, 0}}, 4},
    {"1 to 4", 5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}}, 4},
};

// Bytes per second through the busiest NIC.
double measure(Transport& t, const Pattern& pattern, const Options& o) {
  const auto size = static_cast<std::size_t>(o.bytes);
  const std::vector<std::byte> out(size);
  // Every connection has a few messages in flight.
  constexpr int kAhead = 4;
  struct Connection {
    bool sends;
    int peer;
    std::vector<std::vector<std::byte>> buffers;
    std::vector<Request> requests;
  };
  std::vector<Connection> connections;
  for (const auto& [from, to] : pattern.pairs)
    for (const bool sends : {true, false})
      if (t.rank() == (sends ? from : to))
        connections.push_back(
            {sends,
             sends ? to : from,
             {static_cast<std::size_t>(sends ? 0 : kAhead), std::vector<std::byte>(size)},
             std::vector<Request>(kAhead)});
  const auto run = [&](int messages) {
    barrier(t, pattern.ranks);
    const auto begin = Clock::now();
    for (int i = 0; i < messages + kAhead; ++i)
      for (Connection& c : connections) {
        const auto slot = static_cast<std::size_t>(i % kAhead);
        t.wait(c.requests[slot]);
        if (i >= messages) continue;
        c.requests[slot] = c.sends ? t.send(c.peer, Tag::ring, out)
                                   : t.receive(c.peer, Tag::ring, c.buffers[slot]);
      }
    barrier(t, pattern.ranks);
    return seconds_between(begin, Clock::now());
  };
  run(kAhead);  // warm-up: touches the memory, wakes the threads
  return static_cast<double>(o.bytes) * o.messages * pattern.busiest / run(o.messages);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("bench_link", [&] {
    Options o;
    CLI::App app("Measures what share of its nominal rate an emulated link reaches, over threads.");
    set_conventions(app);
    app.add_option("--link", o.link, "1gbe, 10gbe, 25gbe, 100gbe or RATE[/LATENCY]");
    app.add_option("--bytes", o.bytes, "Length of a message")->check(CLI::Range(1L, 1L << 30));
    app.add_option("--messages", o.messages, "Messages per connection")
        ->check(CLI::Range(1, 1 << 20));
    if (!parse_command_line(app, argc, argv)) return;
    if (mpi_launch()) throw UserError("bench_link measures over threads; start it without mpiexec");
    const LinkSpeed link = parse_link(o.link);
    fmt::print("link {}, messages of {} bytes\n", o.link, o.bytes);
    for (const Pattern& pattern : kPatterns)
      run_on_ranks({.app = "bench_link", .ranks = pattern.ranks, .link = link},
                   [&](Communication& communication) {
                     communication.call([&] {
                       Transport& transport = communication.transport();
                       const double rate = measure(transport, pattern, o);
                       if (transport.rank() != 0) return;
                       fmt::print("  {:<12} {:>9.2f} MB/s", pattern.name, rate / 1e6);
                       if (link.limited())
                         fmt::print(", {:.1f}% of the rate", 100 * rate / link.bytes_per_s);
                       fmt::print("\n");
                     });
                   });
  });
}
