// The figures of the papers that Tandem implements, made again by simulation. One source file for
// each paper.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/paper_figures/figure.h"
#include "simulate/simulation.h"

namespace tandem {

// Something that a paper says, and what our simulation says.
struct Claim {
  std::string paper, figure;
  std::string what;
  std::string theirs, ours, difference;
  std::string formula = {};  // what the paper's own formula says of our net, if we evaluate it
};

class Reproduction {
 public:
  explicit Reproduction(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Simulates, prints what came out, and returns the seconds of an iteration: the mean of the later
  // half of those that count, because servers need some iterations to settle.
  double seconds(const Profile& profile, const Simulation& simulation);
  SimulatedRun run(const Profile& profile, const Simulation& simulation);

  void draw(const Figure& figure);

  // How many times as fast: 1.36 and 1.31 differ by -4%.
  void ratio(const Claim& claim, double theirs, double ours, double formula);
  void number(const Claim& claim, double theirs, double ours, double formula);
  // A gain in throughput, in percent: 26 and 28 differ by +2 points.
  void gain(const Claim& claim, double theirs, double ours);
  void other(const Claim& claim) { claims_.push_back(claim); }

  const std::vector<Claim>& claims() const { return claims_; }

 private:
  std::filesystem::path folder_;
  std::vector<Claim> claims_;
};

// The profile with all times multiplied, so that forward and backward take so long together.
Profile that_computes(Profile profile, double seconds);
// 1.26 and 1 give 26.
double gain_percent(double baseline_s, double other_s);

void ko_figures(Reproduction& out);
void mg_wfbp_figures(Reproduction& out);
void p3_figures(Reproduction& out);
void pipe_sgd_figures(Reproduction& out);

}  // namespace tandem
