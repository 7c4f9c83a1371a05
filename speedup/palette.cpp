#include "speedup/palette.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "dist/codecs/codec_table.h"
#include "speedup/results.h"

namespace tandem {
namespace {

// Of the rows that every table has, by Okabe and Ito.
constexpr std::array<std::string_view, 7> kRowColours = {kGrey,     "#0072b2", "#56b4e9", "#009e73",
                                                         "#e69f00", "#d55e00", "#cc79a7"};
// Of other algorithms, by Tol. Rows that differ only in compression share a colour. So do rows with
// the same codec.
constexpr std::array<std::string_view, 13> kOtherColours = {
    "#aa4499", "#999933", "#882255", "#44aa99", "#cc6677", "#117733", "#332288",
    "#6699cc", "#ddcc77", "#661100", "#88ccee", "#ee7733", "#000000"};

constexpr std::pair<std::string_view, std::string_view> kActivities[] = {
    {"compute", "#4477aa"},  {"data", "#ccbb44"},       {"forward", "#66ccee"},
    {"backward", "#4477aa"}, {"update", "#228833"},     {"compress", "#aa3377"},
    {"sum", "#997700"},      {"communicate", "#ee6677"}};

}  // namespace

std::string algorithm_colour(std::string_view name) {
  std::size_t rows = 0;
  std::vector<std::string> others;
  for (const Algorithm& a : all_algorithms()) {
    if (!a.by_default && (others.empty() || others.back() != a.algo)) others.push_back(a.algo);
    if (a.name == name)
      return std::string(a.by_default ? kRowColours[rows % kRowColours.size()]
                                      : kOtherColours[(others.size() - 1) % kOtherColours.size()]);
    rows += a.by_default;
  }
  const auto codec = std::ranges::find_if(all_codecs(), [&](const CodecInfo& info) {
    return name.find("+" + info.name) != std::string_view::npos;
  });
  if (codec == all_codecs().end()) return std::string(kGrey);
  return std::string(
      kOtherColours[static_cast<std::size_t>(codec - all_codecs().begin()) % kOtherColours.size()]);
}

std::string activity_colour(std::string_view what) {
  for (const auto& [name, colour] : kActivities)
    if (name == what) return std::string(colour);
  return "#bbbbbb";
}

}  // namespace tandem
