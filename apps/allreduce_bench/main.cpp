// Times our ring all-reduce, over threads or under mpiexec, beside MPI_Allreduce in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dist/ring_allreduce/ring_allreduce.h"
#include "dist/transport/collectives.h"
#include "dist/transport/mpi_launch.h"
#include "dist/transport/mpi_transport.h"
#include "tensor/error.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/launch.h"
#include "train/statistics.h"

using namespace tandem;

namespace {

struct Options {
  int ranks = 4;
  std::int64_t min_bytes = 1 << 10, max_bytes = 256 << 20;
  int iterations = 0;  // 0: as many as a size deserves
  std::string compress = "none", link = "none";
  bool json = false;
};

bool parse(int argc, char** argv, Options& o) {
  CLI::App app(
      "Times the ring all-reduce of f32 gradients, from --min-bytes to --max-bytes in factors of "
      "4,\n"
      "over threads or, under mpiexec, over MPI and beside MPI_Allreduce. Checks every result.\n"
      "\n"
      "  time   of the slowest rank, median over the iterations\n"
      "  algbw  bytes of the gradient / time\n"
      "  busbw  algbw · 2(p-1)/p: what each rank's network card carries if nothing is compressed\n"
      "  wire   the same for the bytes that are really sent\n"
      "  MPI    MPI_Allreduce, when its waiting spins and when it yields, and our time over the\n"
      "         shorter of the two");
  set_conventions(app);
  app.add_option("--ranks", o.ranks, "Threads that make the ring; under mpiexec its processes")
      ->check(CLI::Range(1, 256));
  app.add_option("--min-bytes", o.min_bytes, "Smallest gradient")->check(CLI::Range(4L, 1L << 32));
  app.add_option("--max-bytes", o.max_bytes, "Largest gradient")->check(CLI::Range(4L, 1L << 32));
  app.add_option("--iterations", o.iterations, "Timed rounds per size; 0: 5 to 50, by size")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--compress", o.compress, "none, trunc16 or quant8")
      ->check(CLI::IsMember(compressor_names()));
  app.add_option("--link", o.link, "none, 1gbe, 10gbe, 25gbe, 100gbe or RATE[/LATENCY]");
  app.add_flag("--json", o.json, "Print one JSON object per size");
  return parse_command_line(app, argc, argv);
}

// A gradient whose sum is known: rank r holds (i mod 61) - 30 + r.
float element(std::int64_t i, int rank) { return static_cast<float>(i % 61 - 30 + rank); }

class Bench {
 public:
  Bench(Transport& transport, const Options& o)
      : transport_(transport),
        ranks_(transport.size()),
        o_(o),
        compressor_(make_compressor(o.compress)),
        ring_(transport, ranks_, *compressor_, spans_) {}

  void run(std::int64_t bytes) {
    values_.resize(static_cast<std::size_t>(bytes) / sizeof(float));
    const int rounds = o_.iterations > 0
                           ? o_.iterations
                           : static_cast<int>(std::clamp<std::int64_t>(
                                 (64L << 20) / std::max<std::int64_t>(bytes, 1), 5, 50));
    const bool mpi = mpi_launch().has_value() && o_.link == "none";
    std::vector<double> ours, spins, yields;
    std::int64_t sent = 0, wrong = 0;
    for (int round = -2; round < rounds; ++round) {  // two to warm up
      fill();
      sent = -transport_.bytes_sent(Tag::ring);
      const double s = time([&] { ring_.sum(values_); });
      sent += transport_.bytes_sent(Tag::ring);
      wrong += check();
      if (round >= 0) ours.push_back(s);
      if (!mpi) continue;
      for (auto [wait, times] :
           {std::pair(MpiWait::yields, &yields), std::pair(MpiWait::spins, &spins)}) {
        fill();
        const double theirs = time([&, w = wait] { mpi_allreduce(values_, w); });
        if (round >= 0) times->push_back(theirs);
      }
    }
    double totals[] = {static_cast<double>(wrong), static_cast<double>(sent)};
    sum_over_ranks(transport_, ranks_, totals);
    if (transport_.rank() == 0)
      print(bytes, quantile(ours, 0.5), quantile(spins, 0.5), quantile(yields, 0.5),
            totals[1] / ranks_, totals[0]);
    if (totals[0] > 0) throw SystemError("{:g} elements of a sum are wrong", totals[0]);
  }

  static void print_header(const Options& o, int ranks) {
    if (o.json) return;
    fmt::print("ring all-reduce: {} ranks over {}, link {}, compression {}\n", ranks,
               mpi_launch() ? mpi_version() : "threads", o.link, o.compress);
    fmt::print("{:>11} {:>11} {:>12} {:>10} {:>10} {:>10} {:>12} {:>12} {:>6}\n", "bytes",
               "elements", "time ms", "algbw GB/s", "busbw GB/s", "wire GB/s", "MPI spins ms",
               "MPI yields ms", "ratio");
  }

 private:
  void fill() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = element(static_cast<std::int64_t>(i), transport_.rank());
  }

  // Of the slowest rank.
  template <class F>
  double time(F&& f) {
    barrier(transport_, ranks_);
    const auto begin = Clock::now();
    f();
    std::vector<double> all(static_cast<std::size_t>(ranks_));
    all[static_cast<std::size_t>(transport_.rank())] = seconds_between(begin, Clock::now());
    sum_over_ranks(transport_, ranks_, all);
    return *std::max_element(all.begin(), all.end());
  }

  // How many elements are not the sum; after compression, how many are further off than every rank
  // rounding twice can explain.
  std::int64_t check() const {
    double largest = 0;  // of all contributions
    for (int rank = 0; rank < ranks_; ++rank) largest += std::max(30.0, 30.0 + rank);
    const double step = o_.compress == "none"      ? 0
                        : o_.compress == "trunc16" ? 1.0 / 128
                                                   : 1.0 / 254;
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      float sum = 0;
      for (int rank = 0; rank < ranks_; ++rank) sum += element(static_cast<std::int64_t>(i), rank);
      const double error = std::abs(static_cast<double>(values_[i]) - static_cast<double>(sum));
      if (!(error <= 2 * ranks_ * step * largest)) ++wrong;
    }
    return wrong;
  }

  void print(std::int64_t bytes, double seconds, double spins, double yields, double wire_bytes,
             double wrong) const {
    const double algbw = static_cast<double>(bytes) / seconds / 1e9;
    const double busbw = algbw * 2 * (ranks_ - 1) / ranks_;
    const double wire = wire_bytes / seconds / 1e9;
    const double peer = std::min(spins, yields);
    if (o_.json) {
      nlohmann::ordered_json json = {
          {"bytes", bytes},           {"elements", bytes / 4}, {"ranks", ranks_},
          {"compress", o_.compress},  {"link", o_.link},       {"ms", 1e3 * seconds},
          {"algbw_gb_s", algbw},      {"busbw_gb_s", busbw},   {"wire_gb_s", wire},
          {"wire_bytes", wire_bytes}, {"wrong", wrong}};
      if (peer > 0) {
        json["mpi_spins_ms"] = 1e3 * spins;
        json["mpi_yields_ms"] = 1e3 * yields;
      }
      fmt::print("{}\n", json.dump());
    } else if (peer > 0) {
      fmt::print(
          "{:>11} {:>11} {:>12.4f} {:>10.3f} {:>10.3f} {:>10.3f} {:>12.4f} {:>13.4f} {:>6.2f}\n",
          bytes, bytes / 4, 1e3 * seconds, algbw, busbw, wire, 1e3 * spins, 1e3 * yields,
          seconds / peer);
    } else {
      fmt::print("{:>11} {:>11} {:>12.4f} {:>10.3f} {:>10.3f} {:>10.3f} {:>12} {:>13} {:>6}\n",
                 bytes, bytes / 4, 1e3 * seconds, algbw, busbw, wire, "-", "-", "-");
    }
    std::fflush(stdout);
  }

  Transport& transport_;
  int ranks_;
  const Options& o_;
  std::unique_ptr<Compressor> compressor_;
  Spans spans_;
  RingAllReduce ring_;
  std::vector<float> values_;
};

}  // namespace

int main(int argc, char** argv) {
  return run_app("allreduce_bench", [&] {
    Options o;
    if (!parse(argc, argv, o)) return;
    run_on_ranks({.app = "allreduce_bench", .ranks = o.ranks, .link = parse_link(o.link)},
                 [&](Communication& communication) {
                   communication.call([&] {
                     Transport& transport = communication.transport();
                     if (transport.rank() == 0) Bench::print_header(o, transport.size());
                     Bench bench(transport, o);
                     for (std::int64_t bytes = o.min_bytes; bytes <= o.max_bytes; bytes *= 4)
                       bench.run(bytes);
                   });
                 });
  });
}
