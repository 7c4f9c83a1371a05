// P3 (Jayarajan et al., 2019), Fig. 7 to 10 and 12: ResNet-50, Inception-v3, VGG-19 and Sockeye on
// P4000s. As many servers as workers, on the same machines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/paper_figures/papers.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "speedup/palette.h"

namespace tandem {
namespace {

constexpr double kLatency = 20e-6;  // a guess: the paper has none
// Until iteration 9 both measure. Then P3 has settled after one iteration, its baseline after many.
constexpr std::int64_t kIterations = 14, kBaselineIterations = 40;

LinkSpeed link(double gbit) { return {.bytes_per_s = gbit * 1e9 / 8, .latency_s = kLatency}; }

struct Way {
  std::string name, algo;
  StrategyOptions options = {};
  std::string colour;
  std::int64_t iterations = kIterations;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> kWays = {
      {"baseline", "ps-wfbp", {}, algorithm_colour("PS-WFBP"), kBaselineIterations},
      {"slicing alone", "p3", {{"--order", 1}}, algorithm_colour("D-Sync")},
      {"P3", "p3", {}, algorithm_colour("P3")}};
  return kWays;
}
const Way& baseline() { return ways()[0]; }
const Way& p3() { return ways()[2]; }

struct Net {
  std::string name, title;
  // The paper states neither batches nor rates. So computing takes as long as four machines need
  // to exchange the gradient at the bandwidth that the paper chooses for the net in Fig. 8 and 9.
  double balanced_gbit;
  std::vector<double> gbits;

  Profile profile() const {
    const Profile by_flop = profile_of(net_named(name), device_speed_named("p4000"), 32);
    if (balanced_gbit == 0) return by_flop;
    const double bytes = 2 * 0.75 * 4 * static_cast<double>(by_flop.elements());
    return that_computes(by_flop, bytes * 8 / (balanced_gbit * 1e9));
  }
};
const std::vector<Net> kNets = {
    {"resnet50", "ResNet-50", 4, {1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30}},
    {"inception-v3", "Inception-v3", 0, {1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30}},
    {"vgg19", "VGG-19", 15, {1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30}},
    {"sockeye", "Sockeye", 4, {1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30}}};
const Net& net_called(const std::string& name) {
  return *std::ranges::find(kNets, name, &Net::name);
}

double seconds(Reproduction& out, const Profile& profile, const Way& way, int workers,
               double gbit) {
  return out.seconds(profile, {.algo = way.algo,
                               .options = way.options,
                               .workers = workers,
                               .link = link(gbit),
                               .iterations = way.iterations});
}

Claim about(const std::string& figure, const std::string& what) {
  return {.paper = "P3", .figure = figure, .what = what};
}

// ---- Fig. 7: throughput by bandwidth

struct Said {  // a gain over the baseline, in percent
  std::string way;
  double gbit;  // 0: the largest gain at any bandwidth
  double gain;
};
const std::map<std::string, std::vector<Said>> kSaid = {
    {"resnet50", {{"P3", 4, 26}}},
    {"inception-v3", {{"P3", 0, 18}}},
    {"vgg19", {{"slicing alone", 30, 49}, {"P3", 15, 66}}},
    {"sockeye", {{"P3", 0, 38}}}};

void bandwidth_figures(Reproduction& out) {
  Figure throughput{.name = "p3_bandwidth", .title = "P3, Fig. 7: throughput by bandwidth"};
  Figure gains{.name = "p3_gain", .title = "P3, Fig. 7: gain over the baseline"};
  const std::string axis =
      "set logscale x\n" + x_tics({1, 2, 4, 6, 10, 15, 30}) + "set xrange [0.95:32]\n";
  for (const Net& net : kNets) {
    const Profile profile = net.profile();
    std::map<std::string, std::map<double, double>> times;
    for (const Way& way : ways())
      for (const double gbit : net.gbits)
        times[way.name][gbit] = seconds(out, profile, way, 4, gbit);

    const double alone = profile.forward_s() + profile.backward_s();
    Plot plot{.title = net.title,
              .x_label = "link, Gbit/s",
              .y_label = "throughput / without network",
              .settings = axis};
    Plot gain{.title = net.title,
              .x_label = "link, Gbit/s",
              .y_label = "gain over the baseline, %",
              .settings = axis + "set yrange [-5:*]\n"};
    std::map<std::string, double> best;     // gain
    std::map<std::string, double> best_at;  // Gbit/s
    for (const Way& way : ways()) {
      Curve rate{way.name, ours(way.colour), {}}, more{way.name, ours(way.colour), {}};
      for (const auto& [gbit, s] : times[way.name]) {
        rate.points.push_back({gbit, alone / s});
        const double percent = gain_percent(times[baseline().name][gbit], s);
        more.points.push_back({gbit, percent});
        if (!best.contains(way.name) || percent > best[way.name]) {
          best[way.name] = percent;
          best_at[way.name] = gbit;
        }
      }
      plot.curves.push_back(rate);
      if (&way != &baseline()) gain.curves.push_back(more);
    }
    for (const Said& said : kSaid.at(net.name)) {
      const Way& way = *std::ranges::find(ways(), said.way, &Way::name);
      const double at = said.gbit > 0 ? said.gbit : best_at[way.name];
      const double base = times[baseline().name][at];
      if (said.gbit > 0)
        gain.curves.push_back({way.name + ", paper", paper(way.colour), {{at, said.gain}}});
      else
        gain.curves.push_back({way.name + ", paper's largest",
                               formula(way.colour),
                               {{1, said.gain}, {30, said.gain}}});
      if (said.gbit > 0)
        out.gain(about("Fig. 7", fmt::format("{}: {} at {} Gbit/s", net.title, way.name, at)),
                 said.gain, gain_percent(base, times[way.name][at]));
      out.gain(about("Fig. 7", fmt::format("{}: {}, largest gain (ours at {} Gbit/s)", net.title,
                                           way.name, best_at[way.name])),
               said.gain, best[way.name]);
    }
    if (net.name == "resnet50" || net.name == "inception-v3")
      out.gain(about("Fig. 7", fmt::format("{}: slicing alone, largest gain (ours at {} Gbit/s)",
                                           net.title, best_at["slicing alone"])),
               0, best["slicing alone"]);
    throughput.plots.push_back(plot);
    gains.plots.push_back(gain);
  }
  out.draw(throughput);
  out.draw(gains);
}

// ---- Fig. 10: more machines

void machines_figure(Reproduction& out) {
  Figure figure{
      .name = "p3_machines", .title = "P3, Fig. 10: throughput by machines", .columns = 3};
  const std::map<std::string, double> said = {{"resnet50", 0}, {"vgg19", 61}, {"sockeye", 18}};
  for (const char* name : {"resnet50", "vgg19", "sockeye"}) {
    const Net& net = net_called(name);
    const Profile profile = net.profile();
    const double alone = profile.forward_s() + profile.backward_s();
    Plot plot{.title = net.title,
              .x_label = "machines",
              .y_label = "speedup",
              .settings = x_tics({2, 4, 8, 16}) + "set xrange [1:17]\n"};
    std::map<int, double> base;
    for (const Way* way : {&baseline(), &p3()}) {
      Curve curve{way->name, ours(way->colour), {}};
      for (const int machines : {2, 4, 8, 16}) {
        if (machines == 16 && way == &p3() && net.name == "vgg19") {
          fmt::print("left out: VGG-19 with P3 on 16 machines (minutes)\n");
          continue;
        }
        const double s = seconds(out, profile, *way, machines, 10);
        curve.points.push_back({static_cast<double>(machines), machines * alone / s});
        if (way == &baseline()) base[machines] = s;
        if (way != &baseline() && machines == 8) {
          // The paper's gain, on top of our baseline.
          plot.curves.push_back({"P3, paper's gain",
                                 paper(way->colour),
                                 {{8, 8 * alone / base[8] * (1 + said.at(name) / 100)}}});
          out.gain(about("Fig. 10", fmt::format("{}: P3 on 8 machines", net.title)), said.at(name),
                   gain_percent(base[8], s));
        }
      }
      plot.curves.push_back(curve);
    }
    figure.plots.push_back(plot);
  }
  out.draw(figure);
}

// ---- Fig. 12: the slice size

void slice_figure(Reproduction& out) {
  Figure figure{.name = "p3_slices", .title = "P3, Fig. 12: throughput by slice size"};
  const std::vector<std::int64_t> sizes = {10'000, 25'000, 50'000, 100'000, 250'000, 1'000'000};
  for (const char* name : {"resnet50", "vgg19"}) {
    const Net& net = net_called(name);
    const Profile profile = net.profile();
    const double alone = profile.forward_s() + profile.backward_s();
    Curve curve{"P3", ours(p3().colour), {}};
    for (const std::int64_t size : sizes) {
      const double s = out.seconds(profile, {.algo = "p3",
                                             .options = {{"--slice", size}},
                                             .workers = 4,
                                             .link = link(net.balanced_gbit),
                                             .iterations = kIterations});
      curve.points.push_back({static_cast<double>(size), alone / s});
    }
    const Point best = *std::ranges::max_element(curve.points, {}, &Point::y);
    const double at_50000 = curve.points[2].y;
    out.other(
        {.paper = "P3",
         .figure = "Fig. 12",
         .what = fmt::format("{}: best slice, in parameters", net.title),
         .theirs = "50,000",
         .ours = fmt::format("{:.0f}", best.x),
         .difference = fmt::format("{:.1f}% faster than 50,000", 100 * (best.y / at_50000 - 1))});
    figure.plots.push_back(
        {.title = fmt::format("{}, {:g} Gbit/s", net.title, net.balanced_gbit),
         .x_label = "parameters per slice",
         .y_label = "throughput / without network",
         .curves = {curve, {"best slice, paper", paper(p3().colour), {{50'000, at_50000}}}},
         .settings = "set logscale x\nset xtics (\"10k\" 1e4, \"25k\" 2.5e4, \"50k\" 5e4, \"100k\" "
                     "1e5, \"250k\" 2.5e5, \"1M\" 1e6)\nset xrange [8e3:1.2e6]\n"});
  }
  out.draw(figure);
}

// ---- Fig. 8 and 9: how busy the NIC is

constexpr double kBin = 0.01;  // seconds

std::vector<Point> rate_per_bin(const SimulatedRun& run, bool sends, double gbit, double from,
                                double to) {
  const auto bins = static_cast<std::size_t>((to - from) / kBin);
  std::vector<double> busy(bins);
  for (const SimulatedNetwork::Use& use : run.use) {
    if (use.sends != sends) continue;
    double begin = seconds_of(use.begin.time_since_epoch()) - from;
    const double end = seconds_of(use.end.time_since_epoch()) - from;
    if (end <= 0 || begin >= kBin * static_cast<double>(bins)) continue;
    begin = std::max(begin, 0.0);
    for (auto bin = static_cast<std::size_t>(begin / kBin); bin < bins; ++bin) {
      const double first = kBin * static_cast<double>(bin);
      if (first >= end) break;
      busy[bin] += std::min(end, first + kBin) - std::max(begin, first);
    }
  }
  std::vector<Point> points;
  for (std::size_t bin = 0; bin < bins; ++bin)
    points.push_back({1e3 * kBin * (static_cast<double>(bin) + 0.5), gbit * busy[bin] / kBin});
  return points;
}

void use_figure(Reproduction& out) {
  Figure figure{.name = "p3_nic", .title = "P3, Fig. 8 and 9: use of a machine's NIC"};
  for (const char* name : {"resnet50", "vgg19", "sockeye"}) {
    const Net& net = net_called(name);
    std::vector<double> mean_use;
    for (const Way* way : {&baseline(), &p3()}) {
      const SimulatedRun run = out.run(net.profile(), {.algo = way->algo,
                                                       .options = way->options,
                                                       .workers = 4,
                                                       .link = link(net.balanced_gbit),
                                                       .iterations = way->iterations,
                                                       .keep_spans = true});
      const double from = *(run.ends.rbegin() + 3), to = run.ends.back();  // three iterations
      Plot plot{
          .title = fmt::format("{}, {} at {:g} Gbit/s", net.title, way->name, net.balanced_gbit),
          .x_label = "ms",
          .y_label = "Gbit/s",
          .settings = fmt::format("set yrange [0:{}]\n", 1.15 * net.balanced_gbit)};
      double all = 0;
      for (const bool sends : {true, false}) {
        const auto points = rate_per_bin(run, sends, net.balanced_gbit, from, to);
        for (const Point& p : points)
          all += p.y / net.balanced_gbit / 2 / static_cast<double>(points.size());
        plot.curves.push_back({sends ? "out" : "in", line(sends ? "#d55e00" : "#0072b2"), points});
      }
      mean_use.push_back(all);
      figure.plots.push_back(plot);
    }
    out.other({.paper = "P3",
               .figure = "Fig. 8, 9",
               .what = fmt::format("{}: the NIC is idle for less time with P3", net.title),
               .theirs = "less",
               .ours = fmt::format("{:.0f}% instead of {:.0f}%", 100 * (1 - mean_use[1]),
                                   100 * (1 - mean_use[0])),
               .difference = mean_use[1] > mean_use[0] ? "agrees" : "disagrees"});
  }
  out.draw(figure);
}

}  // namespace

void p3_figures(Reproduction& out) {
  bandwidth_figures(out);
  use_figure(out);
  machines_figure(out);
  slice_figure(out);
}

}  // namespace tandem
