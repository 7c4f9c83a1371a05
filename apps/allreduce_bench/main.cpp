// Times our all-reduce, over threads or under mpiexec, and MPI_Allreduce in the same run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/statistics.h"
#include "dist/all_reduce.h"
#include "dist/launch.h"
#include "dist/schedule/merge.h"
#include "dist/transport/collectives.h"
#include "dist/transport/mpi_launch.h"
#include "dist/transport/mpi_transport.h"
#include "train/app.h"
#include "train/command_line.h"

using namespace tandem;

namespace {

struct Options {
  int ranks = 4;
  std::int64_t min_bytes = 1 << 10, max_bytes = 256 << 20;
  std::vector<std::int64_t> bytes;  // these sizes instead
  std::int64_t first_block = 0;
  bool fit = false;
  int iterations = 0;  // 0: chosen by size
  bool free_cores = false;
  std::string compress = "none", link = "none";
  bool json = false;
};

bool parse(int argc, char** argv, Options& o) {
  CLI::App app(
      "Times the all-reduce of f32 gradients, from --min-bytes to --max-bytes in factors of 4, "
      "over\n"
      "threads or, under mpiexec, over MPI, compared with MPI_Allreduce. Checks every result.\n"
      "Ranks on one machine exchange directly. Over a network or a --link they form a ring.\n"
      "\n"
      "  time   of the slowest rank, median over the iterations; with --fit the shortest\n"
      "  algbw  bytes of the gradient / time\n"
      "  busbw  algbw · 2(p-1)/p: what each rank's NIC (network card) carries without compression\n"
      "  wire   the same for the bytes actually sent\n"
      "  MPI    MPI_Allreduce in ms, if waiting yields and if it spins (MPI's default)\n"
      "  ratio  our time divided by the shorter of the two\n"
      "  off    --fit: by how much the time differs from a + bM");
  set_conventions(app);
  app.add_option("--ranks", o.ranks, "Threads that form the ring; under mpiexec its processes")
      ->check(CLI::Range(1, 256));
  app.add_option("--min-bytes", o.min_bytes, "Smallest gradient")->check(CLI::Range(4L, 1L << 32));
  app.add_option("--max-bytes", o.max_bytes, "Largest gradient")->check(CLI::Range(4L, 1L << 32));
  app.add_option("--bytes", o.bytes, "These sizes instead, multiples of 4")
      ->check(CLI::Range(0L, 1L << 32));
  app.add_option("--first-block", o.first_block,
                 "Where in the flat gradient it begins, in blocks of 8 KB, as a bucket would")
      ->check(CLI::Range(0L, 1L << 32));
  app.add_flag("--fit", o.fit,
               "Sum as buckets are summed, and say how far the times of all sizes are from a + bM");
  app.add_option("--iterations", o.iterations, "Timed rounds per size; 0: 5 to 50, by size")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--compress", o.compress,
                 fmt::format("One of {}", fmt::join(compressor_names(), ", ")))
      ->check(CLI::IsMember(compressor_names()));
  app.add_option("--link", o.link, "none, 1gbe, 10gbe, 25gbe, 100gbe or RATE[/LATENCY]");
  app.add_flag("--free-cores", o.free_cores,
               "Use free cores, as in GPU runs: spin while waiting,\n"
               "and sum and copy with several threads per rank");
  app.add_flag("--json", o.json, "Print one JSON object per size");
  if (!parse_command_line(app, argc, argv)) return false;
  if (const auto launch = mpi_launch();
      launch && app.count("--ranks") > 0 && o.ranks != launch->size)
    throw UserError("--ranks {} does not match the {} processes that mpiexec has started", o.ranks,
                    launch->size);
  if (o.min_bytes > o.max_bytes)
    throw UserError("--min-bytes {} is more than --max-bytes {}", o.min_bytes, o.max_bytes);
  if (o.bytes.empty())
    for (std::int64_t bytes = o.min_bytes; bytes <= o.max_bytes; bytes *= 4)
      o.bytes.push_back(bytes);
  for (const std::int64_t bytes : o.bytes)
    if (bytes % 4 != 0) throw UserError("{} bytes are not a whole number of f32 elements", bytes);
  return true;
}

// A gradient whose sum is known: rank r holds (i mod 61) - 30 + r.
float element(std::int64_t i, int rank) { return static_cast<float>(i % 61 - 30 + rank); }

// One line of the table.
struct Row {
  std::int64_t bytes = 0;
  double seconds = 0, wire_bytes = 0;    // of ours; the bytes that each rank sends
  double mpi_yields = 0, mpi_spins = 0;  // seconds; 0 if not measured
};

class Bench {
 public:
  Bench(Transport& transport, const Options& o)
      : transport_(transport),
        ranks_(transport.size()),
        o_(o),
        compressor_(make_compressor(o.compress)) {}

  std::vector<Row> run() {
    const bool mpi = mpi_launch().has_value() && o_.link == "none";
    std::vector<Row> rows;
    for (const std::int64_t bytes : o_.bytes) rows.push_back(ours_and_yielding(bytes, mpi));
    // Measured separately, because spinning ranks take the cores from all others.
    for (Row& row : rows)
      if (mpi) row.mpi_spins = measure(row.bytes, [&] { mpi_allreduce(values_, MpiWait::spins); });
    return rows;
  }

 private:
  // Alternates between both, so that a noisy machine disturbs them equally.
  Row ours_and_yielding(std::int64_t bytes, bool mpi) {
    Row row{.bytes = bytes};
    const auto sum = make_all_reduce({.transport = transport_,
                                      .ranks = ranks_,
                                      .compressor = *compressor_,
                                      .spans = spans_,
                                      .linear = o_.fit},
                                     {.count = bytes / 4, .first_block = o_.first_block});
    std::vector<double> ours, yields;
    double wrong[] = {0};
    for (int round = -kWarmUp; round < rounds(bytes); ++round) {
      const std::int64_t before = transport_.bytes_sent(Tag::ring);
      const double seconds = time(bytes, [&] { sum->sum(values_); });
      row.wire_bytes = static_cast<double>(transport_.bytes_sent(Tag::ring) - before);
      wrong[0] += static_cast<double>(count_wrong());
      if (round >= 0) ours.push_back(seconds);
      if (!mpi) continue;
      const double theirs = time(bytes, [&] { mpi_allreduce(values_, MpiWait::yields); });
      if (round >= 0) yields.push_back(theirs);
    }
    sum_over_ranks(transport_, ranks_, wrong);
    if (wrong[0] > 0) throw SystemError("{} elements of a sum are wrong", wrong[0]);
    row.seconds = quantile(ours, o_.fit ? 0 : 0.5);
    row.mpi_yields = quantile(yields, 0.5);
    return row;
  }

  template <class F>
  double measure(std::int64_t bytes, F&& f) {
    std::vector<double> seconds;
    for (int round = -kWarmUp; round < rounds(bytes); ++round) {
      const double s = time(bytes, f);
      if (round >= 0) seconds.push_back(s);
    }
    return quantile(seconds, 0.5);
  }

  // One call on a fresh gradient. The time is that of the slowest rank.
  template <class F>
  double time(std::int64_t bytes, F&& f) {
    values_.resize(static_cast<std::size_t>(bytes) / sizeof(float));
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = element(static_cast<std::int64_t>(i), transport_.rank());
    start_together(transport_, ranks_);
    const auto begin = Clock::now();
    f();
    std::vector<double> all(static_cast<std::size_t>(ranks_));
    all[static_cast<std::size_t>(transport_.rank())] = seconds_between(begin, Clock::now());
    sum_over_ranks(transport_, ranks_, all);
    return *std::max_element(all.begin(), all.end());
  }

  // The number of wrong elements. With compression, an element may be off by two roundings of every
  // rank.
  std::int64_t count_wrong() const {
    double largest = 0;  // bound of the sum
    for (int rank = 0; rank < ranks_; ++rank) largest += 30.0 + rank;
    const double step = o_.compress == "none"      ? 0
                        : o_.compress == "trunc16" ? 1.0 / 128
                        : o_.compress == "quant8"  ? 1.0 / 254
                                                   : 1;
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      double sum = 0;
      for (int rank = 0; rank < ranks_; ++rank)
        sum += static_cast<double>(element(static_cast<std::int64_t>(i), rank));
      const double error = std::abs(static_cast<double>(values_[i]) - sum);
      if (!(error <= 2 * ranks_ * step * largest)) ++wrong;
    }
    return wrong;
  }

  int rounds(std::int64_t bytes) const {
    if (o_.iterations > 0) return o_.iterations;
    return static_cast<int>(
        std::clamp<std::int64_t>((256L << 20) / std::max<std::int64_t>(1, bytes), 5, 50));
  }

  static constexpr int kWarmUp = 2;
  Transport& transport_;
  int ranks_;
  const Options& o_;
  std::unique_ptr<Compressor> compressor_;
  Spans spans_;
  std::vector<float> values_;
};

SumCost line_through(const std::vector<Row>& rows) {
  std::vector<SumTime> times;
  for (const Row& row : rows) times.push_back({static_cast<double>(row.bytes), row.seconds});
  return fit(times);
}

// By how much a time differs from the line, as a part of it.
double off(const Row& row, const SumCost& line) {
  return row.seconds / line(static_cast<double>(row.bytes)) - 1;
}

void print(const std::vector<Row>& rows, const Options& o, int ranks) {
  if (!o.json) {
    fmt::print("all-reduce: {} rank{} over {}, link {}, compression {}\n", ranks,
               ranks == 1 ? "" : "s", mpi_launch() ? mpi_version() : "threads", o.link, o.compress);
    fmt::print("{:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>6}{}\n", "bytes",
               "elements", "time ms", "algbw GB/s", "busbw GB/s", "wire GB/s", "MPI yields",
               "MPI spins", "ratio", o.fit ? "     off" : "");
  }
  const SumCost line = o.fit ? line_through(rows) : SumCost();
  for (const Row& r : rows) {
    const double algbw = static_cast<double>(r.bytes) / r.seconds / 1e9;
    const double busbw = algbw * 2 * (ranks - 1) / ranks;
    const double wire = r.wire_bytes / r.seconds / 1e9;
    const bool mpi = r.mpi_yields > 0;
    const double ratio = mpi ? r.seconds / std::min(r.mpi_yields, r.mpi_spins) : 0;
    if (o.json) {
      nlohmann::ordered_json json = {
          {"bytes", r.bytes},    {"ranks", ranks},        {"compress", o.compress},
          {"link", o.link},      {"ms", 1e3 * r.seconds}, {"algbw_gb_s", algbw},
          {"busbw_gb_s", busbw}, {"wire_gb_s", wire},     {"wire_bytes", r.wire_bytes}};
      if (mpi) {
        json["mpi_yields_ms"] = 1e3 * r.mpi_yields;
        json["mpi_spins_ms"] = 1e3 * r.mpi_spins;
      }
      if (o.fit) json["off"] = off(r, line);
      fmt::print("{}\n", json.dump());
      continue;
    }
    const auto or_dash = [&](double value, const char* format) {
      return mpi ? fmt::format(fmt::runtime(format), value) : "-";
    };
    fmt::print("{:>11} {:>11} {:>11.4f} {:>11.3f} {:>11.3f} {:>11.3f} {:>11} {:>11} {:>6}{}\n",
               r.bytes, r.bytes / 4, 1e3 * r.seconds, algbw, busbw, wire,
               or_dash(1e3 * r.mpi_yields, "{:.4f}"), or_dash(1e3 * r.mpi_spins, "{:.4f}"),
               or_dash(ratio, "{:.2f}"),
               o.fit ? fmt::format("{:>+7.1f}%", 100 * off(r, line)) : "");
  }
  if (o.fit && !o.json)
    fmt::print("a + bM: a {:.4f} ms, b {:.4f} ns per byte\n", 1e3 * line.a, 1e9 * line.b);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("allreduce_bench", [&] {
    Options o;
    if (!parse(argc, argv, o)) return;
    run_on_ranks({.app = "allreduce_bench",
                  .ranks = o.ranks,
                  .link = parse_link(o.link),
                  .computes_elsewhere = o.free_cores,
                  .same = {{"--min-bytes", fmt::format("{}", o.min_bytes)},
                           {"--max-bytes", fmt::format("{}", o.max_bytes)},
                           {"--bytes", fmt::format("{}", fmt::join(o.bytes, ","))},
                           {"--first-block", fmt::format("{}", o.first_block)},
                           {"--iterations", fmt::format("{}", o.iterations)},
                           {"--compress", o.compress},
                           {"--link", o.link}}},
                 [&](Communication& communication) {
                   communication.call([&] {
                     Transport& transport = communication.transport();
                     const auto rows = Bench(transport, o).run();
                     if (transport.rank() == 0) print(rows, o, transport.size());
                   });
                 });
  });
}
