// MG-WFBP (Shi et al., 2019), Fig. 6 to 9: GoogLeNet and ResNet-50 on K80s and 10 GbE.
#include <fmt/format.h>

#include <map>

#include "apps/paper_figures/papers.h"
#include "dist/schedule/merge.h"
#include "dist/transport/link.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "speedup/palette.h"

namespace tandem {
namespace {

// The constants of the authors' own simulation.
constexpr double kAlpha = 45.25e-6;                    // seconds per message
constexpr double kBeta = 1.2 / (9.0 * (1 << 30) / 8);  // seconds per byte
constexpr double kGamma = 160 / 64e9;                  // seconds to add a byte
constexpr double kTraceBackward = 0.201;               // of their trace of GoogLeNet
constexpr std::int64_t kIterations = 20, kFewIterations = 14;

const std::vector<int> kCluster = {1, 2, 4, 8}, kSimulated = {2, 4, 8, 16, 32, 64};
const std::vector<int> kBeyond = {128, 256};  // by Eq. 21

// By name in the figures. The paper calls D-Sync SyncEASGD.
const std::vector<std::pair<std::string, std::string>> kAlgorithms = {
    {"d-sync", "D-Sync"}, {"wfbp", "WFBP"}, {"mg-wfbp", "MG-WFBP"}, {"merge", "Merge"}};

// Samples per second and node, by number of nodes, as the authors published the data of Fig. 6, 7.
using Measured = std::map<std::string, std::vector<double>>;

struct Case {
  std::string title;
  Profile profile;
  double samples;  // of a node in an iteration, as the paper counts them
  Measured measured;
  double over_wfbp = 0, over_d_sync = 0;  // at 64 nodes; 0: the paper does not say
};

// An all-reduce of M bytes takes a + bM (Table II).
SumCost ring_cost(int workers) {
  const double share = (workers - 1.0) / workers;
  return {.a = 2 * (workers - 1) * kAlpha, .b = share * (2 * kBeta + kGamma)};
}

// The iteration by the paper's closed form, Eq. 21.
double by_formula(const Profile& profile, const std::string& algo, int workers) {
  Layers layers;
  double ready = profile.forward_s();
  for (auto t = profile.tensors.rbegin(); t != profile.tensors.rend(); ++t) {
    ready += t->backward_s;
    layers.push_back({.ready = ready, .bytes = 4.0 * static_cast<double>(t->elements)});
  }
  const SumCost cost = ring_cost(workers);
  const Groups groups = algo == "d-sync"    ? all_together(layers)
                        : algo == "wfbp"    ? each_alone(layers)
                        : algo == "mg-wfbp" ? by_theorem_1(layers, cost)
                                            : optimal(layers, cost);
  return finish_time(layers, groups, cost);
}

// The paper sends a layer's weight and bias together. Where the authors' GoogLeNet has a bias, ours
// has batch normalisation. So it has 64 layers, as theirs.
Profile by_layer(Profile profile) {
  const auto layer_of = [](const std::string& tensor) {
    std::string layer = tensor.substr(0, tensor.rfind('.'));
    for (const char* part : {".conv", ".bn"})
      if (layer.ends_with(part)) layer.resize(layer.rfind('.'));
    return layer;
  };
  std::vector<Profile::Tensor> all;
  for (const Profile::Tensor& t : profile.tensors) {
    if (all.empty() || all.back().name != layer_of(t.name))
      all.push_back({.name = layer_of(t.name)});
    Profile::Tensor& layer = all.back();
    layer.elements += t.elements;
    layer.forward_s += t.forward_s;
    layer.backward_s += t.backward_s;
  }
  profile.tensors = all;
  return profile;
}

std::vector<Case> cases() {
  const DeviceSpeed& k80 = device_speed_named("k80");
  const Profile googlenet = by_layer(profile_of(net_named("googlenet"), k80, 64));
  const double trace = kTraceBackward / googlenet.backward_s();
  std::vector<Case> all = {{.title = "GoogLeNet, batch 64",
                            .profile = googlenet,
                            .samples = 64,
                            .measured = {{"wfbp", {81.68, 74.83, 74.91, 62.9}},
                                         {"d-sync", {81.68, 62.57, 57.67, 55.58}},
                                         {"mg-wfbp", {81.68, 79.02, 75.03, 75.68}}},
                            .over_wfbp = 1.78,
                            .over_d_sync = 1.35},
                           {.title = "ResNet-50, batch 32",
                            .profile = by_layer(profile_of(net_named("resnet50"), k80, 32)),
                            .samples = 2 * 32,  // a node has two GPUs
                            .measured = {{"wfbp", {76.85, 75.55, 73.68, 58.2}},
                                         {"d-sync", {76.85, 60.0, 55.7, 50.8}},
                                         {"mg-wfbp", {76.85, 75.59, 73.8, 70.83}}},
                            .over_wfbp = 1.75,
                            .over_d_sync = 1.45},
                           {.title = "GoogLeNet, 201 ms backward",
                            .profile = that_computes(googlenet, trace * (googlenet.forward_s() +
                                                                         googlenet.backward_s())),
                            .samples = 64 * trace,
                            .measured = {},
                            .over_wfbp = 1.78,
                            .over_d_sync = 1.35}};
  for (Case& c : all) c.profile.host["none"].add = kGamma * sizeof(float);
  return all;
}

// Seconds per iteration by algorithm and workers.
using Times = std::map<std::string, std::map<int, double>>;

Times simulated(Reproduction& out, const Case& c) {
  // A hop of M bytes takes alpha + beta·M: the latency, and the time of a frame in the switch.
  const LinkSpeed link{.bytes_per_s = 1 / kBeta, .latency_s = kAlpha - kFrameBytes * kBeta};
  Times times;
  for (const auto& [algo, name] : kAlgorithms) {
    std::vector<int> workers = kSimulated;
    if (algo == "d-sync") workers.insert(workers.end(), kBeyond.begin(), kBeyond.end());
    if (algo == "merge" && !c.measured.empty()) workers.push_back(128);
    times[algo][1] = c.profile.forward_s() + c.profile.backward_s();
    for (const int n : workers)
      times[algo][n] = out.seconds(c.profile, {.algo = algo,
                                               .workers = n,
                                               .link = link,
                                               .iterations = n > 64 ? kFewIterations : kIterations,
                                               .one_for_all = algo == "d-sync"});
  }
  fmt::print(
      "left out: more than 128 workers with Merge, more than 64 with WFBP and MG-WFBP (minutes)\n");
  return times;
}

Times calculated(const Case& c) {
  Times times;
  for (const auto& [algo, name] : kAlgorithms) {
    times[algo][1] = c.profile.forward_s() + c.profile.backward_s();
    for (const std::vector<int>& some : {kSimulated, kBeyond})
      for (const int n : some) times[algo][n] = by_formula(c.profile, algo, n);
  }
  return times;
}

// Points for the numbers of workers that a plot shows.
template <class F>
std::vector<Point> points(const std::map<int, double>& times, int most, const F& y, int least = 1) {
  std::vector<Point> all;
  for (const auto& [n, seconds] : times)
    if (n >= least && n <= most) all.push_back({static_cast<double>(n), y(n, seconds)});
  return all;
}

const std::string kWorkersAxis = "set logscale x 2\n";

// Fig. 6 and 7.
Plot throughput_plot(const Case& c, const Times& ours_s, const Times& formula_s) {
  Plot plot{.title = c.title,
            .x_label = "nodes",
            .y_label = "images/s per node",
            .settings = kWorkersAxis + x_tics({1, 2, 4, 8}) + "set xrange [0.9:9]\n"};
  const auto rate = [&](int, double seconds) { return c.samples / seconds; };
  for (const auto& [algo, name] : kAlgorithms) {
    const std::string colour = algorithm_colour(name);
    plot.curves.push_back({name, ours(colour), points(ours_s.at(algo), 8, rate)});
    plot.curves.push_back(
        {name + ", Eq. 21", formula(colour), points(formula_s.at(algo), 8, rate)});
    const auto measured = c.measured.find(algo);
    if (measured == c.measured.end()) continue;
    Curve curve{name + ", paper", paper(colour), {}};
    for (std::size_t i = 0; i < kCluster.size(); ++i)
      curve.points.push_back({static_cast<double>(kCluster[i]), measured->second[i]});
    plot.curves.push_back(curve);
  }
  return plot;
}

// Fig. 9, as the part of linear speedup that is reached.
Plot efficiency_plot(const Case& c, const Times& ours_s, const Times& formula_s) {
  Plot plot{.title = c.title,
            .x_label = "nodes",
            .y_label = "speedup / nodes",
            .settings = kWorkersAxis + x_tics({1, 4, 16, 64, 256}) + "set xrange [0.9:300]\n"};
  const auto part = [&](const Times& times) {
    return [&](int, double seconds) { return times.at("d-sync").at(1) / seconds; };
  };
  for (const auto& [algo, name] : kAlgorithms) {
    const std::string colour = algorithm_colour(name);
    plot.curves.push_back({name, ours(colour), points(ours_s.at(algo), 256, part(ours_s))});
    plot.curves.push_back(
        {name + ", Eq. 21", formula(colour), points(formula_s.at(algo), 256, part(formula_s))});
  }
  if (c.profile.net == "resnet50")  // "only have around 55% scaling efficiency"
    plot.curves.push_back({"both 55%, paper", paper(std::string(kGrey)), {{64, 0.55}}});
  return plot;
}

// How much faster MG-WFBP is than the others.
Plot gain_plot(const Case& c, const Times& ours_s, const Times& formula_s) {
  Plot plot{.title = c.title,
            .x_label = "nodes",
            .y_label = "speedup of MG-WFBP",
            .settings = kWorkersAxis + x_tics({2, 4, 8, 16, 32, 64}) + "set xrange [1.8:72]\n"};
  for (const auto& [algo, name, at_8, at_64] :
       {std::tuple("wfbp", "WFBP", 1.2, c.over_wfbp), {"d-sync", "D-Sync", 1.36, c.over_d_sync}}) {
    const std::string colour = algorithm_colour(name), over = std::string("over ") + name;
    const auto gain = [&](const Times& times) {
      return points(
          times.at("mg-wfbp"), 64,
          [&](int n, double seconds) { return times.at(algo).at(n) / seconds; }, 2);
    };
    plot.curves.push_back({over, ours(colour), gain(ours_s)});
    plot.curves.push_back({over + ", Eq. 21", formula(colour), gain(formula_s)});
    Curve said{over + ", paper", paper(colour), {{64, at_64}}};
    if (!c.measured.empty()) said.points.push_back({8, at_8});
    plot.curves.push_back(said);
  }
  return plot;
}

void claim(Reproduction& out, const Case& c, const Times& ours_s, const Times& formula_s) {
  const bool resnet = c.profile.net == "resnet50";
  const auto about = [](const std::string& figure, const std::string& what) {
    return Claim{.paper = "MG-WFBP", .figure = figure, .what = what};
  };
  const auto ratio = [](const Times& times, const char* algo, int n) {
    return times.at(algo).at(n) / times.at("mg-wfbp").at(n);
  };
  for (const auto& [algo, name, at_8, at_64] :
       {std::tuple("wfbp", "WFBP", 1.2, c.over_wfbp), {"d-sync", "D-Sync", 1.36, c.over_d_sync}})
    for (const auto& [n, said, figure] : {std::tuple(8, at_8, "Fig. 8"), {64, at_64, "Fig. 9"}}) {
      if (n == 8 && c.measured.empty()) continue;
      out.ratio(about(figure, fmt::format("{}: MG-WFBP over {} at N = {}", c.title, name, n)), said,
                ratio(ours_s, algo, n), ratio(formula_s, algo, n));
    }
  for (const auto& [algo, name] : kAlgorithms) {
    if (resnet && (algo == "wfbp" || algo == "d-sync")) {
      const auto part = [&](const Times& times) {
        return 100 * times.at(algo).at(1) / times.at(algo).at(64);
      };
      out.number(about("Fig. 9", fmt::format("{}: efficiency of {} at N = 64, %", c.title, name)),
                 55, part(ours_s), part(formula_s));
    }
    const auto measured = c.measured.find(algo);
    if (measured == c.measured.end()) continue;
    out.number(about(resnet ? "Fig. 7" : "Fig. 6",
                     fmt::format("{}: images/s per node with {} at N = 8", c.title, name)),
               measured->second[3], c.samples / ours_s.at(algo).at(8),
               c.samples / formula_s.at(algo).at(8));
  }
}

}  // namespace

void mg_wfbp_figures(Reproduction& out) {
  Figure throughput{.name = "mg_wfbp_throughput",
                    .title = "MG-WFBP, Fig. 6 and 7: throughput on 1 to 8 nodes"};
  Figure efficiency{.name = "mg_wfbp_efficiency",
                    .title = "MG-WFBP, Fig. 9: speedup on up to 256 nodes",
                    .columns = 3};
  Figure gain{.name = "mg_wfbp_gain",
              .title = "MG-WFBP, Fig. 9: how much faster than WFBP and D-Sync",
              .columns = 3};
  for (const Case& c : cases()) {
    fmt::print("{}\n", c.title);
    const Times ours_s = simulated(out, c), formula_s = calculated(c);
    if (!c.measured.empty()) throughput.plots.push_back(throughput_plot(c, ours_s, formula_s));
    efficiency.plots.push_back(efficiency_plot(c, ours_s, formula_s));
    gain.plots.push_back(gain_plot(c, ours_s, formula_s));
    claim(out, c, ours_s, formula_s);
  }
  for (const Figure* figure : {&throughput, &efficiency, &gain}) out.draw(*figure);
}

}  // namespace tandem
