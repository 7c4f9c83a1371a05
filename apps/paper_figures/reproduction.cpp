#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "apps/paper_figures/papers.h"
#include "base/statistics.h"

namespace tandem {
namespace {

std::string options_text(const StrategyOptions& options) {
  std::string text;
  for (const auto& [name, value] : options)
    for (const StrategyOption& option : strategy_options())
      if (option.name == name) text += fmt::format(" {} {}", name, option.text(value));
  return text;
}

// With the difference in percent, if there is a formula.
std::string by_formula(double theirs, double formula, const char* unit, int digits) {
  return fmt::format("{:.{}f}{} ({:+.0f}%)", formula, digits, unit, 100 * (formula / theirs - 1));
}

Claim compared(Claim claim, double theirs, double ours, double formula, const char* unit,
               int digits) {
  claim.theirs = fmt::format("{:.{}f}{}", theirs, digits, unit);
  claim.ours = fmt::format("{:.{}f}{}", ours, digits, unit);
  claim.difference = fmt::format("{:+.0f}%", 100 * (ours / theirs - 1));
  claim.formula = by_formula(theirs, formula, unit, digits);
  return claim;
}

double settled_s(const SimulatedRun& run) {
  const std::vector<double> counted = run.counted_s();
  return mean({counted.begin() + std::ssize(counted) / 2, counted.end()});
}

}  // namespace

SimulatedRun Reproduction::run(const Profile& profile, const Simulation& s) {
  using Wall = std::chrono::steady_clock;
  const Wall::time_point begin = Wall::now();
  SimulatedRun result = simulate(profile, s);
  const double took = std::chrono::duration<double>(Wall::now() - begin).count();
  fmt::print("{:<13} {:<28} {:>4} workers, {:>6.4g} Gbit/s: {:>8.2f} ms ({:.1f} s)\n", profile.net,
             s.algo + options_text(s.options) + (s.compress == "none" ? "" : " " + s.compress),
             s.workers, s.link.bytes_per_s * 8e-9, 1e3 * settled_s(result), took);
  std::fflush(stdout);
  return result;
}

double Reproduction::seconds(const Profile& profile, const Simulation& simulation) {
  return settled_s(run(profile, simulation));
}

void Reproduction::draw(const Figure& figure) {
  tandem::draw(figure, folder_);
  fmt::print("{}\n", (folder_ / (figure.name + ".svg")).string());
}

void Reproduction::ratio(const Claim& claim, double theirs, double ours, double formula) {
  claims_.push_back(compared(claim, theirs, ours, formula, "×", 2));
}

void Reproduction::number(const Claim& claim, double theirs, double ours, double formula) {
  claims_.push_back(compared(claim, theirs, ours, formula, "", 1));
}

void Reproduction::gain(const Claim& claim, double theirs, double ours) {
  Claim full = claim;
  full.theirs = fmt::format("{:+.0f}%", theirs);
  full.ours = fmt::format("{:+.0f}%", ours);
  full.difference = fmt::format("{:+.0f} points", ours - theirs);
  claims_.push_back(full);
}

Profile that_computes(Profile profile, double seconds) {
  const double factor = seconds / (profile.forward_s() + profile.backward_s());
  for (Profile::Tensor& tensor : profile.tensors) {
    tensor.forward_s *= factor;
    tensor.backward_s *= factor;
  }
  return profile;
}

double gain_percent(double baseline_s, double other_s) { return 100 * (baseline_s / other_s - 1); }

}  // namespace tandem
