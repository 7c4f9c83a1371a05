// Ko et al. (2021), Fig. 2 and 3: seven algorithms on up to 24 Titan Vs, with ResNet-50 and VGG-16.
// Three hosts have eight GPUs each. Two containers share a host and its NIC (the paper does not say
// whether they do); each has four workers and, if there are servers, one of them. And, in the same
// form: what one slow worker costs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/paper_figures/papers.h"
#include "base/statistics.h"
#include "dist/ad_psgd/topology.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "simulate/sweep.h"
#include "speedup/palette.h"

namespace tandem {
namespace {

constexpr int kPerHost = 8, kPerServer = 4;
constexpr int kMost = 24;
constexpr double kGbits[] = {10, 56}, kNoLimit = 0;

LinkSpeed link(double gbit) {
  if (gbit == kNoLimit) return {};
  return {.bytes_per_s = gbit * 1e9 / 8, .latency_s = gbit > 10 ? 2e-6 : 30e-6};
}

struct Way {
  std::string name, algo;
  std::string row;  // whose colour it has
  std::int64_t iterations;
  std::int64_t period = 1;  // in which iterations differ
  StrategyOptions options = {};

  std::string short_name() const { return name.substr(0, name.find_first_of(" ,")); }
};
// With the parameters of the paper's Table II. BSP's workers of a host add their gradients first,
// and one of them talks to the servers: "local aggregation". AD-PSGD's neighbours are all workers
// of the other kind: in a ring, most would be on the same host.
const std::vector<Way> kWays = {
    {"BSP (ps-sync)", "ps-sync", "PS-Sync", 24, 1, {{"--aggregate", 1}}},
    {"ASP", "asp", "ASP", 20},
    {"SSP, s = 10", "ssp", "SSP", 40, 11, {{"--staleness", 10}}},
    {"EASGD, τ = 8", "easgd", "EASGD", 56, 8, {{"--period", 8}}},
    {"AR-SGD (d-sync)", "d-sync", "D-Sync", 40},
    {"GoSGD, p = 0.01", "gosgd", "GoSGD", 40, 1, {{"--gossip-p", 10'000}}},
    {"AD-PSGD",
     "ad-psgd",
     "AD-PSGD",
     40,
     1,
     {{"--topology", static_cast<std::int64_t>(Topology::complete)}}}};

struct Net {
  std::string name, title;
  std::int64_t batch;

  Profile profile() const {
    return profile_of(net_named(name), device_speed_named("titan-v"), batch);
  }
};
const std::vector<Net> kNets = {{"resnet50", "ResNet-50", 128}, {"vgg16", "VGG-16", 96}};

// Within a host, messages pass a PCIe bus.
Simulation simulation(const Way& way, int workers, double gbit) {
  Simulation s{.algo = way.algo,
               .options = way.options,
               .workers = workers,
               .link = link(gbit),
               .iterations = way.iterations,
               .ranks_per_node = kPerHost,
               .inner = {.bytes_per_s = 12e9, .latency_s = 2e-6},
               .servers_share_nodes = true};
  const StrategyInfo& info = strategy_named(way.algo);
  if (info.has_option("--servers"))
    s.options["--servers"] = (workers + kPerServer - 1) / kPerServer;
  if (gbit == kNoLimit) s.inner = {};
  return s;
}

// The mean of whole periods, of about the later half: first meetings are crowded.
double settled_s(const SimulatedRun& run, const Way& way) {
  const std::vector<double> counted = run.counted_s();
  const std::int64_t periods = std::max<std::int64_t>(1, std::ssize(counted) / 2 / way.period);
  return mean({counted.end() - std::min(std::ssize(counted), periods * way.period), counted.end()});
}

double computing(const Profile& profile) { return profile.forward_s() + profile.backward_s(); }

// ---- Fig. 2: throughput by workers

// By net, bandwidth and way: how many workers without a network would be as fast as 24.
using Speedups = std::map<std::string, std::map<double, std::map<std::string, double>>>;

Speedups scalability_figure(Reproduction& out) {
  Figure figure{.name = "ko_scalability", .title = "Ko et al., Fig. 2: throughput by workers"};
  Speedups all;
  for (const Net& net : kNets)
    for (const double gbit : kGbits) {
      const Profile profile = net.profile();
      Plot plot{
          .title = fmt::format("{}, {:g} Gbit/s", net.title, gbit),
          .x_label = "workers",
          .y_label = "throughput / one worker's",
          .settings = x_tics({1, 2, 4, 8, 16, 24}) + "set xrange [0:25]\nset yrange [0:25]\n"};
      plot.curves.push_back({"linear", formula(std::string(kGrey)), {{1, 1}, {kMost, kMost}}});
      for (const Way& way : kWays) {
        Curve curve{way.name, ours(algorithm_colour(way.row)), {{1, 1}}};
        for (const int workers : {2, 4, 8, 16, kMost}) {
          const double s = settled_s(out.run(profile, simulation(way, workers, gbit)), way);
          const double speedup = workers * computing(profile) / s;
          curve.points.push_back({static_cast<double>(workers), speedup});
          all[net.name][gbit][way.algo] = speedup;  // of the most workers
        }
        plot.curves.push_back(curve);
      }
      figure.plots.push_back(plot);
    }
  out.draw(figure);
  return all;
}

// ---- Fig. 3: what an iteration consists of

struct Parts {
  double computing, waiting, communicating;
  double iteration() const { return computing + waiting + communicating; }
  double aggregating() const { return (waiting + communicating) / iteration(); }
};

std::string boxes(const std::string& colour) {
  return fmt::format("with boxes fill solid 1 noborder linecolor rgb \"{}\"", colour);
}

std::string names_below() {
  std::string tics;
  for (std::size_t i = 0; i < kWays.size(); ++i)
    tics += fmt::format("{}\"{}\" {}", i ? ", " : "", kWays[i].short_name(), i);
  return fmt::format("set xtics ({}) rotate by 35 right\nset xrange [-0.6:{}]\nset boxwidth 0.65\n",
                     tics, static_cast<double>(kWays.size()) - 0.4);
}

// By way. Waiting is what remains without a limit of the network: it is for slower workers.
// Communication is the rest, with the queues at NICs and servers.
using PartsByWay = std::map<std::string, Parts>;

std::map<double, PartsByWay> parts_of(Reproduction& out, Profile profile) {
  profile.spread = normal_spread(0.05);
  const double computes = computing(profile);
  const auto iteration = [&](const Way& way, double gbit) {
    Simulation s = simulation(way, kMost, gbit);
    s.scatters = true;
    return settled_s(out.run(profile, s), way);
  };
  std::map<double, PartsByWay> all;
  for (const Way& way : kWays) {
    const double with_waiting = std::max(computes, iteration(way, kNoLimit));
    for (const double gbit : kGbits)
      all[gbit][way.algo] = {computes, with_waiting - computes,
                             std::max(0.0, iteration(way, gbit) - with_waiting)};
  }
  return all;
}

using Breakdowns = std::map<std::string, std::map<double, PartsByWay>>;  // by net and bandwidth

Breakdowns breakdown_figure(Reproduction& out) {
  Figure figure{.name = "ko_breakdown", .title = "Ko et al., Fig. 3: parts of an iteration"};
  Breakdowns all;
  for (const Net& net : kNets) {
    all[net.name] = parts_of(out, net.profile());
    for (const auto& [gbit, parts] : all[net.name]) {
      // The tallest first: the others are drawn over it.
      Curve whole{"communication", boxes(activity_colour("communicate")), {}},
          waits{"waiting for workers", boxes("#bbbbbb"), {}},
          computes{"computing", boxes(activity_colour("compute")), {}};
      for (std::size_t i = 0; i < kWays.size(); ++i) {
        const Parts& p = parts.at(kWays[i].algo);
        const auto x = static_cast<double>(i);
        computes.points.push_back({x, 1e3 * p.computing});
        waits.points.push_back({x, 1e3 * (p.computing + p.waiting)});
        whole.points.push_back({x, 1e3 * p.iteration()});
      }
      figure.plots.push_back({.title = fmt::format("{}, {:g} Gbit/s", net.title, gbit),
                              .x_label = "",
                              .y_label = "ms per iteration",
                              .curves = {whole, waits, computes},
                              .settings = names_below()});
    }
  }
  out.draw(figure);
  return all;
}

// ---- one slow worker

void straggler_figure(Reproduction& out) {
  const Profile profile = profile_of(net_named("resnet50"), device_speed_named("titan-v"), 128);
  const double alone = computing(profile);
  Figure figure{.name = "ko_straggler",
                .title = "Time in which four workers make four iterations, one at half the speed",
                .columns = 1};
  Curve slow{"one at half speed", boxes("#ee6677"), {}},
      equal{"all equally fast", boxes("#4477aa"), {}};
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    Simulation s = simulation(kWays[i], 4, 10);
    s.ranks_per_node = 1;
    if (s.options.contains("--servers")) s.options["--servers"] = 4;
    s.iterations = 200;  // SSP takes long to settle
    const auto x = static_cast<double>(i);
    equal.points.push_back({x, settled_s(out.run(profile, s), kWays[i]) / alone});
    s.slow_ranks = {{3, 0.5}};
    slow.points.push_back({x, settled_s(out.run(profile, s), kWays[i]) / alone});
  }
  figure.plots.push_back({.title = "ResNet-50, 4 workers with 10 Gbit/s each",
                          .x_label = "",
                          .y_label = "four iterations / computing time",
                          .curves = {slow, equal},
                          .settings = names_below()});
  out.draw(figure);
}

// ---- what the paper says

std::string per_cent(double share) { return fmt::format("{:.0f}%", 100 * share); }

void claims_of(Reproduction& out, Speedups& speedups, Breakdowns& breakdowns) {
  const auto claim = [&](const char* figure, const std::string& what, const std::string& theirs,
                         const std::string& ours, bool agrees) {
    out.other({.paper = "Ko et al.",
               .figure = figure,
               .what = what,
               .theirs = theirs,
               .ours = ours,
               .difference = agrees ? "agrees" : "disagrees"});
  };
  auto& resnet = speedups["resnet50"];
  auto& vgg = speedups["vgg16"];
  const auto both = [](double a, double b) { return fmt::format("{:.1f}× and {:.1f}×", a, b); };
  const auto below = [&](const char* other, const char* name) {
    const double asp = resnet[10]["asp"], theirs = resnet[10][other];
    claim("Fig. 2", fmt::format("ResNet-50, 10 Gbit/s: ASP is slower than {}", name), "slower",
          both(asp, theirs), asp < theirs);
  };
  below("ps-sync", "BSP");
  below("d-sync", "AR-SGD");
  const auto gain = [&](const char* algo, const char* name, bool large) {
    const double more = resnet[56][algo] / resnet[10][algo] - 1;
    claim("Fig. 2", fmt::format("ResNet-50: what {} gains from 56 instead of 10 Gbit/s", name),
          large ? "much" : "little", per_cent(more), large ? more > 0.3 : more < 0.1);
  };
  gain("ps-sync", "BSP", false);
  gain("d-sync", "AR-SGD", false);
  gain("asp", "ASP", true);
  gain("ssp", "SSP", true);
  const auto scales = [&](const char* algo, const char* name, const char* how, double least) {
    const double ten = resnet[10][algo], more = resnet[56][algo];
    claim("Fig. 2", fmt::format("ResNet-50: {} scales {}, at 10 and 56 Gbit/s", name, how), how,
          both(ten, more), std::min(ten, more) >= least * kMost);
  };
  scales("ad-psgd", "AD-PSGD", "well", 0.8);
  scales("gosgd", "GoSGD", "almost linearly", 0.95);
  const double central = std::max({resnet[10]["ps-sync"], resnet[10]["asp"], resnet[10]["ssp"]});
  claim("§III", "ResNet-50, 10 Gbit/s: EASGD is faster than BSP, ASP and SSP", "faster",
        fmt::format("{:.1f}×, the others at most {:.1f}×", resnet[10]["easgd"], central),
        resnet[10]["easgd"] > central);
  for (const double gbit : kGbits) {
    std::string worse;
    bool all = true;
    for (const Way& way : kWays) {
      all = all && vgg[gbit][way.algo] <= resnet[gbit][way.algo];
      worse += fmt::format("{}{} {:.1f}/{:.1f}", worse.empty() ? "" : ", ", way.short_name(),
                           vgg[gbit][way.algo], resnet[gbit][way.algo]);
    }
    claim("Fig. 2",
          fmt::format("{:g} Gbit/s: all scale worse with VGG-16 than with ResNet-50", gbit),
          "worse", worse, all);
    const double servers = std::max(vgg[gbit]["asp"], vgg[gbit]["ssp"]);
    const double others = std::min(vgg[gbit]["d-sync"], vgg[gbit]["ad-psgd"]);
    claim(
        "Fig. 2",
        fmt::format("VGG-16, {:g} Gbit/s: AR-SGD and AD-PSGD scale better than ASP and SSP", gbit),
        "better", fmt::format("at least {:.1f}×, at most {:.1f}×", others, servers),
        others > servers);
  }
  for (const Net& net : kNets)
    for (const double gbit : kGbits) {
      const Parts& bsp = breakdowns[net.name][gbit]["ps-sync"];
      claim("Fig. 3", fmt::format("{}, {:g} Gbit/s: share of aggregation in BSP", net.title, gbit),
            "> 50%", per_cent(bsp.aggregating()), bsp.aggregating() > 0.5);
    }
  const Parts& bsp = breakdowns["resnet50"][56]["ps-sync"];
  const double waiting = bsp.waiting / (bsp.waiting + bsp.communicating);
  claim("Fig. 3", "ResNet-50, 56 Gbit/s: share of waiting in BSP's aggregation", "up to 80%",
        per_cent(waiting), waiting > 0.5);
  for (const char* algo : {"asp", "ssp"}) {
    const double share = breakdowns["resnet50"][10][algo].aggregating();
    claim("Fig. 3",
          fmt::format("ResNet-50, 10 Gbit/s: share of communication in {}",
                      strategy_named(algo).rows.label),
          "> 50%", per_cent(share), share > 0.5);
  }
}

}  // namespace

void ko_figures(Reproduction& out) {
  straggler_figure(out);
  Speedups speedups = scalability_figure(out);
  Breakdowns breakdowns = breakdown_figure(out);
  claims_of(out, speedups, breakdowns);
}

}  // namespace tandem
