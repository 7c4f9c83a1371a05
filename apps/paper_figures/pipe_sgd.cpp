// Pipe-SGD (Li et al., 2018): four workers, as in the paper. Speedup over D-Sync by bandwidth, and
// Eq. 3 and 4: how far apart the iterations of a pipeline should be (K).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/paper_figures/papers.h"
#include "dist/timing/model.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "speedup/palette.h"
#include "speedup/results.h"

namespace tandem {
namespace {

constexpr double kLatency = 30e-6;  // of 10 GbE
constexpr int kWorkers = 4;
constexpr std::int64_t kIterations = 20;
const std::vector<double> kGbits = {1, 2, 3, 5, 7, 10, 15, 25, 40, 60, 100};

struct Net {
  std::string name, title;
  Profile profile() const {  // a quarter of the paper's batch of 256
    return profile_of(net_named(name), device_speed_named("titan-v"), 64);
  }
};
const std::vector<Net> kNets = {{"alexnet", "AlexNet"}, {"resnet50", "ResNet-50"}};

double seconds(Reproduction& out, const Profile& profile, const std::string& algo,
               const std::string& compress, double gbit, const StrategyOptions& options = {}) {
  return out.seconds(profile, {.algo = algo,
                               .options = options,
                               .compress = compress,
                               .workers = kWorkers,
                               .link = {.bytes_per_s = gbit * 1e9 / 8, .latency_s = kLatency},
                               .iterations = kIterations});
}

// The paper's +T and +Q have the colours of their algorithm, so lines must differ by more.
std::string style(const std::string& name, const std::string& compress) {
  return fmt::format("{} dashtype {}", ours(algorithm_colour(name)),
                     compress == "quant8"    ? "(3,3)"
                     : compress == "trunc16" ? "(9,4)"
                                             : "solid");
}

void bandwidth_figure(Reproduction& out) {
  Figure figure{.name = "pipe_sgd_bandwidth",
                .title = "Pipe-SGD: speedup over D-Sync by bandwidth"};
  for (const Net& net : kNets) {
    const Profile profile = net.profile();
    std::map<std::string, std::map<double, double>> times;
    Plot plot{.title = fmt::format("{}, {} workers", net.title, kWorkers),
              .x_label = "link, Gbit/s",
              .y_label = "speedup over D-Sync",
              .settings = "set logscale x\n" + x_tics({1, 2, 5, 10, 25, 50, 100}) +
                          "set xrange [0.9:110]\n"};
    for (const char* algo : {"d-sync", "pipe-sgd"})
      for (const char* compress : {"none", "trunc16", "quant8"}) {
        const std::string name = row_name(strategy_named(algo).rows.label, compress);
        Curve curve{name, style(name, compress), {}};
        for (const double gbit : kGbits) {
          const double s = times[name][gbit] = seconds(out, profile, algo, compress, gbit);
          curve.points.push_back({gbit, times["D-Sync"][gbit] / s});
        }
        plot.curves.push_back(curve);
      }
    plot.curves.push_back(
        {"best, 4 nets of the paper",
         fmt::format("with linespoints linecolor rgb \"{}\" linewidth 3 pointtype "
                     "2 pointsize 1",
                     algorithm_colour("Pipe-SGD+Q")),
         {{10, 2.0}, {10, 3.2}}});
    figure.plots.push_back(plot);

    // The paper's ranges are those of its four benchmarks.
    const auto at_10 = [&](const std::string& name) { return times[name][10]; };
    const double best = std::min({at_10("Pipe-SGD"), at_10("Pipe-SGD+T"), at_10("Pipe-SGD+Q")});
    const double server = seconds(out, profile, "ps-sync", "none", 10);
    const double compute = profile.forward_s() + profile.backward_s();
    const auto range = [&](const std::string& over, double least, double most, double ours) {
      out.other({.paper = "Pipe-SGD",
                 .figure = "Fig. 4",
                 .what = fmt::format("{}: best Pipe-SGD over {} at 10 Gbit/s", net.title, over),
                 .theirs = fmt::format("{:.1f}–{:.1f}×", least, most),
                 .ours = fmt::format("{:.2f}×", ours),
                 .difference = ours < least  ? fmt::format("{:.0f}%", 100 * (ours / least - 1))
                               : ours > most ? fmt::format("{:+.0f}%", 100 * (ours / most - 1))
                                             : "none"});
    };
    range("D-Sync", 2.0, 3.2, at_10("D-Sync") / best);
    range("PS-Sync", 4.0, 5.4, server / best);
    const double part = (at_10("D-Sync") - compute) / (server - compute);
    out.other({.paper = "Pipe-SGD",
               .figure = "Fig. 4",
               .what = fmt::format("{}: communication of D-Sync, compared with PS-Sync", net.title),
               .theirs = "-50%",
               .ours = fmt::format("{:+.0f}%", 100 * (part - 1)),
               .difference = fmt::format("{:+.0f} points", 100 * part - 50)});
  }
  out.draw(figure);
}

// With one compute and one communication resource, K = 2 suffices (Eq. 4). Only with unlimited
// resources would a longer pipeline help (Eq. 3).
void length_figure(Reproduction& out) {
  Figure figure{.name = "pipe_sgd_k",
                .title = "Pipe-SGD, Eq. 3 and 4: the iteration by the length of the pipeline",
                .columns = 3};
  const Profile profile = kNets[1].profile();
  const double bytes = 4.0 * static_cast<double>(profile.elements());
  const ComputeCost compute{.forward = profile.forward_s(), .backward = profile.backward_s()};
  double longest_gain = 0, eq_4_error = 0;
  for (const auto& [gbit, what] :
       {std::pair(2.5, "communication-bound"), {5.75, "balanced"}, {25.0, "computation-bound"}}) {
    const NetworkCost network{.alpha = kLatency, .beta = 8 / (gbit * 1e9)};
    const double ring = ring_time(network, kWorkers, bytes, bytes);
    Curve measured{"simulated", ours(algorithm_colour("Pipe-SGD")), {}};
    Curve limited{"Eq. 2 and 4: limited", formula(algorithm_colour("Pipe-SGD")), {}};
    Curve unlimited{"Eq. 3: unlimited", formula(std::string(kGrey)), {}};
    std::map<int, double> times;
    for (int k = 1; k <= 4; ++k) {
      times[k] = seconds(out, profile, "pipe-sgd", "none", gbit, {{"--pipe-k", k}});
      const double by_eq = k == 1 ? sync_iteration(compute, ring) : pipe_iteration(compute, ring);
      const double x = k;
      measured.points.push_back({x, 1e3 * times[k]});
      limited.points.push_back({x, 1e3 * by_eq});
      unlimited.points.push_back({x, 1e3 * ideal_pipe_iteration(compute, ring, k)});
      eq_4_error = std::max(eq_4_error, std::abs(times[k] / by_eq - 1));
      if (k > 2) longest_gain = std::max(longest_gain, times[2] / times[k] - 1);
    }
    figure.plots.push_back({.title = fmt::format("{:g} Gbit/s, {}", gbit, what),
                            .x_label = "K",
                            .y_label = "ms per iteration",
                            .curves = {measured, limited, unlimited},
                            .settings = x_tics({1, 2, 3, 4}) + "set xrange [0.8:4.2]\n"});
  }
  out.other({.paper = "Pipe-SGD",
             .figure = "Eq. 4",
             .what = "ResNet-50: gain of K = 3 and 4 over K = 2",
             .theirs = "none",
             .ours = fmt::format("{:.1f}%", 100 * longest_gain),
             .difference = fmt::format("{:.1f}%", 100 * longest_gain)});
  out.other({.paper = "Pipe-SGD",
             .figure = "Eq. 2, 4",
             .what = "ResNet-50: iteration by the equations, largest error at K = 1 to 4",
             .theirs = "0%",
             .ours = fmt::format("{:.1f}%", 100 * eq_4_error),
             .difference = fmt::format("{:.1f}%", 100 * eq_4_error)});
  out.draw(figure);
}

}  // namespace

void pipe_sgd_figures(Reproduction& out) {
  bandwidth_figure(out);
  length_figure(out);
}

}  // namespace tandem
