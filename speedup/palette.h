// The colours of figures, tables and timelines. Colour-blind readers can tell them apart, on white
// and on dark grey: Okabe and Ito's palette for the paper's algorithms, Paul Tol's for other
// algorithms and for activities.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// The same in every figure and table; grey for a name that is neither in all_algorithms()
// nor has a codec.
std::string algorithm_colour(std::string_view name);

// The colour of a thread's activity: compute, data, forward, backward, update, compress, sum,
// communicate, wait.
std::string activity_colour(std::string_view what);

// Visible on white and on dark grey.
inline constexpr std::string_view kGrey = "#8a8f98";

// The colour of text and axes, and of the grid behind the curves.
struct Theme {
  std::string_view ink, grid;
};
inline constexpr Theme kLight{"#30343b", "#dcdfe5"}, kDark{"#d9dce3", "#3b404a"};

}  // namespace tandem
