#include "speedup/palette.h"

#include <algorithm>
#include <array>
#include <utility>

#include "speedup/results.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 10> kAlgorithms = {
    kGrey,     "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7",  // Okabe and Ito
    "#aa4499", "#999933", "#882255"};                                             // Tol

constexpr std::pair<std::string_view, std::string_view> kActivities[] = {
    {"compute", "#4477aa"},  {"data", "#ccbb44"},       {"forward", "#66ccee"},
    {"backward", "#4477aa"}, {"update", "#228833"},     {"compress", "#aa3377"},
    {"sum", "#997700"},      {"communicate", "#ee6677"}};

}  // namespace

std::string algorithm_colour(std::string_view name) {
  const auto& all = all_algorithms();
  const auto found = std::ranges::find(all, name, &Algorithm::name);
  const auto index = static_cast<std::size_t>(found - all.begin());
  return std::string(index < kAlgorithms.size() ? kAlgorithms[index] : kGrey);
}

std::string activity_colour(std::string_view what) {
  for (const auto& [name, colour] : kActivities)
    if (name == what) return std::string(colour);
  return "#bbbbbb";
}

}  // namespace tandem
