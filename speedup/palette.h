// The colours of figures, tables and timelines. They can be told apart by the colour-blind (Okabe
// and Ito's for the paper's algorithms, Paul Tol's for others and for what time is spent on), on
// white and on dark grey.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// The same in every figure and table; grey for a name that is none of all_algorithms().
std::string algorithm_colour(std::string_view name);

// What a thread was busy with: compute, data, forward, backward, update, compress, sum,
// communicate, wait.
std::string activity_colour(std::string_view what);

// Stands out on white and on dark grey.
inline constexpr std::string_view kGrey = "#8a8f98";

// Text and axes, and lines of a grid behind the curves.
struct Theme {
  std::string_view ink, grid;
};
inline constexpr Theme kLight{"#30343b", "#dcdfe5"}, kDark{"#d9dce3", "#3b404a"};

}  // namespace tandem
